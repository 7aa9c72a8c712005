"""What the peers in Python share: their arguments, the samples, their one line of JSON. See apps/lockstep_bench/peers.h."""

import argparse
import json
import sys

CLASSES = 10
PIXELS = 28 * 28
BATCH = 128


def arguments(settings):
    parser = argparse.ArgumentParser()
    parser.add_argument("--setting", choices=settings, required=True)
    parser.add_argument("--model", required=True)
    for name in ("--cores", "--samples", "--epochs", "--warm-up", "--started"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--file", required=True)
    return parser.parse_args()


def answer(line):
    print(json.dumps(line), flush=True)
    sys.exit(0)


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def read_bytes(path, count):
    """All pixels of the samples one after another, then a byte with the class of each."""
    with open(path, "rb") as file:
        return bytearray(file.read(count * (PIXELS + 1)))
