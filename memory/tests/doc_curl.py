"""A ``curl`` for the examples of the documents: what they use of it, and a refusal is a failure."""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request


def main() -> int:
    """Send one request; the answer goes to standard output."""
    options = _options()
    body = options.data.encode() if options.data is not None else None
    request = urllib.request.Request(
        options.url, data=body, method=options.request or ("POST" if body is not None else "GET")
    )
    for header in options.header:
        name, _colon, value = header.partition(":")
        request.add_header(name.strip(), value.strip())
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            sys.stdout.buffer.write(answer.read())
            sys.stdout.buffer.write(b"\n")
    except urllib.error.HTTPError as error:
        sys.stderr.write(f"{error.code}: {error.read().decode(errors='replace')}\n")
        return 22
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="curl")
    parser.add_argument("-s", "--silent", action="store_true")
    parser.add_argument("-N", "--no-buffer", action="store_true")
    parser.add_argument("-X", "--request")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("-d", "--data")
    parser.add_argument("url")
    return parser.parse_args()


sys.exit(main())
