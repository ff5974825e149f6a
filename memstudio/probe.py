"""``python -m memstudio.probe [PORT]``: whether this container is ready; for health checks."""

from __future__ import annotations

import http.client
import sys

PORT = 8765
ANSWER_WITHIN_S = 4


def main(port: int = PORT) -> int:
    """Exit code 0 when it is."""
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_WITHIN_S)
    try:
        web.request("GET", "/readyz")
        return int(web.getresponse().status != 200)
    except OSError:
        return 1
    finally:
        web.close()


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
