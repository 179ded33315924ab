#!/usr/bin/env bash
# Installs the AWS emulator that the tests under test/aws use into node_modules/.cache/aws-emulator, unless what
# is there has the pinned versions already. Needs Python 3.10 or later with venv and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
requirements=test/support/aws-emulator/requirements.txt
home=node_modules/.cache/aws-emulator
python=${PYTHON:-python3}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
  echo "error: $("$python" --version) is too old for the AWS emulator; set PYTHON to Python 3.10 or later" >&2
  exit 1
}
if cmp --silent "$requirements" "$home/installed.txt"; then exit 0; fi
echo "installing the AWS emulator (once) …"
rm -rf "$home"
"$python" -m venv "$home"
"$home/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
# Last, since it says that the rest is whole.
cp "$requirements" "$home/installed.txt"
