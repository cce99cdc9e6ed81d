"""Runs the commands of a guide as they stand: python guide.py <address> <temporal> <guide.md>."""

import os
import re
import subprocess
import sys

address, program, guide = sys.argv[1:4]
text = open(guide, encoding="utf-8").read()
lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.replace("\\\n", " ").splitlines()]
assert len(lines) > 10, "the guide has lost its commands"
path = os.path.dirname(os.path.abspath(program)) + os.pathsep + os.environ["PATH"]
for line in lines:
    assert line.startswith("temporal "), line
    environment = {**os.environ, "PATH": path, "TEMPORAL_ADDRESS": address}
    done = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
print(f"{os.path.basename(guide)}: {len(lines)} commands as they stand")
