"""``make chaos``: load an installation while its processes are killed, then look for damage.

Prints a report as JSON; exits with 1 when anything is lost, missing or twice.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any, Final

from benchmarks.chaos import check, load
from benchmarks.chaos.processes import Installation, installation, wait_for

DRAIN_WITHIN_S: Final = 1800.0
LINES_A_FILE: Final = 1000
"""Of as many memories, one file is imported beside them."""


def main() -> int:
    """Run and report; the exit code."""
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--memories", type=int, default=20_000, metavar="N")
    parser.add_argument("--clients", type=int, default=8, metavar="N")
    parser.add_argument("--every", type=float, default=5.0, metavar="S", help="between two kills")
    options = parser.parse_args()
    # Whoever ends this ends every process of it.
    signal.signal(signal.SIGTERM, lambda *_arguments: sys.exit(1))
    try:
        with installation() as stack:
            report = run(stack, options.memories, options.clients, options.every)
    except BaseException:
        traceback.print_exc()
        # Clients never give up, and nothing of theirs is left to answer.
        os._exit(1)
    print(json.dumps(report, indent=2))
    return 0 if report["good"] else 1


def run(stack: Installation, total: int, clients: int, every_s: float) -> dict[str, Any]:
    """Load and kill until everything is stored and each part was killed, then check."""
    files = max(1, total // LINES_A_FILE)
    with load.Studio(stack.webs, stack.first_log) as studio:
        secrets = studio.prepare(clients)
        loading = load.Clients(stack.webs, secrets, total)
        began = time.perf_counter()
        threads = [
            threading.Thread(target=loading.run, name="clients"),
            threading.Thread(target=studio.import_files, args=(files, loading.tally)),
        ]
        for thread in threads:
            thread.start()
        kills = _kill_in_turn(stack, threads, every_s)
    loaded_s = time.perf_counter() - began
    _say(f"{total} memories acknowledged after {loaded_s:.0f} s, {sum(kills.values())} kills")
    wait_for(lambda: _is_drained(stack), DRAIN_WITHIN_S, "the workers to end their work")
    drained_s = time.perf_counter() - began
    _say(f"everything has its vector after {drained_s:.0f} s")
    report = check.everything(stack.database, loading, stack.webs, files)
    tally = loading.tally
    report |= {
        "imported_files": files,
        "acknowledged": tally.acknowledged,
        "refused": tally.refused[: check.SHOWN],
        "requests_sent_again": tally.retries,
        "kills": kills,
        "loaded_s": round(loaded_s, 1),
        "drained_s": round(drained_s, 1),
        "model": load.MODEL,
    }
    whole = tally.acknowledged == total and not tally.refused
    return {"good": whole and check.is_good(report), **report}


def _kill_in_turn(
    stack: Installation, loading: list[threading.Thread], every_s: float
) -> dict[str, int]:
    """Until everything is sent and each part has had its turn."""
    kills = dict.fromkeys(stack.parts, 0)
    pause = threading.Event()
    while any(thread.is_alive() for thread in loading) or not all(kills.values()):
        victim = min(kills, key=lambda name: kills[name])
        pause.wait(every_s)
        took_s = stack.kill(victim)
        stack.supervise()
        kills[victim] += 1
        _say(f"killed {victim}, back after {took_s:.1f} s")
    return kills


def _is_drained(stack: Installation) -> bool:
    stack.supervise()
    return check.waiting(stack.database) == 0


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
