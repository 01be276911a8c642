#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which room may include from which, so that dependencies go one way.

    tools/scripts/includes.py        prints each include that goes the wrong way; exit code 1 if there is one

A room is a folder. MAY says what each room may include in addition to itself.
A room that is not listed may be included by tests only.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]

MAY = {
    "include/clattn": [],
    "src": ["include/clattn"],
    "src/os": ["include/clattn", "src"],
    "src/engines": ["src"],
    "src/engines/cpu": ["src", "src/os"],
    "src/engines/nvidia": ["src"],
    # Tools know the library as any application does, by its header.
    "tools/base": ["include/clattn"],
    "tools/verify": ["include/clattn", "tools/base"],
    "tools/bench": ["include/clattn", "tools/base", "tools/verify"],
    "tools/program": ["include/clattn", "tools/base", "tools/verify", "tools/bench"],
    # The algorithm names no engine; an engine names the algorithm and its own family.
    "cl": ["cl/split"],
    "cl/split": ["cl"],
    "cl/engines/reference": ["cl"],
    "cl/engines/simt": ["cl", "cl/engines/nvidia"],  # barriers of NVIDIA's, where the device has them
    "cl/engines/unfused": ["cl"],
    "cl/engines/cpu": ["cl"],
    "cl/engines/nvidia": ["cl"],
    "cl/engines/nvidia/mma": ["cl", "cl/engines/nvidia"],
    "cl/engines/nvidia/wgmma": ["cl", "cl/engines/nvidia"],
}
# Headers that the source files of more than one room implement.
ALSO = {("src", "src/os")}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def main():
    rooms = {name: {p.name for p in (TOP / name).glob("*") if p.suffix in (".h", ".c", ".cl")} for name in MAY}
    wrong = checked = 0
    for room, may in MAY.items():
        for path in sorted((TOP / room).glob("*")):
            if path.suffix not in (".h", ".c", ".cl"):
                continue
            for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
                checked += 1
                base = pathlib.PurePosixPath(name).name
                if room.startswith("cl"):
                    target = str(pathlib.PurePosixPath(name).parent)
                else:
                    target = next((r for r in [room, *may, *rooms] if base in rooms[r]), None)
                if target in (room, *may) or (room, target) in ALSO or target is None:
                    continue
                print(f"{path.relative_to(TOP)}: includes {name} of {target}; {room} may include from {', '.join(may) or 'itself'}")
                wrong += 1
    if checked < 100:
        print(f"includes: only {checked} includes were found; is this the project's top?")
        return 1
    if not wrong:
        print(f"includes: {checked} includes, all in the allowed direction")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
