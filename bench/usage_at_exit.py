"""Runs a Python module as `python -m` does and writes what the process and its children used when it ends."""

import atexit
import json
import os
import re
import resource
import runpy
import sys


def peak_kibibytes(max_rss):
    # Linux lets ru_maxrss begin at what the parent had in memory; the high-water mark is of this program alone.
    if sys.platform == "linux":
        with open("/proc/self/status") as status:
            return int(re.search(r"^VmHWM:\s+(\d+) kB$", status.read(), re.M)[1])
    return max_rss / 1024 if sys.platform == "darwin" else max_rss


def write_usage():
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    usage = {
        "cpuSeconds": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        "peakMebibytes": peak_kibibytes(own.ru_maxrss) / 1024,
    }
    with open(os.environ["TURNSWEEP_USAGE_FILE"], "w") as file:
        json.dump(usage, file)


# Registered first, so that it runs last.
atexit.register(write_usage)
module = sys.argv[1]
sys.argv = sys.argv[1:]
sys.path[0] = os.getcwd()
runpy.run_module(module, run_name="__main__", alter_sys=True)
