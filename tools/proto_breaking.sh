#!/bin/sh
# Compare the contract with main's. Where there is no main to compare with, or main has no contract yet, say so.
set -eu
cd "$(dirname "$0")/.."
for ref in main origin/main; do
    if git cat-file -e "$ref:proto/buf.yaml" 2>/dev/null; then
        cd proto
        # `ref` and not `branch`, so that a clone that holds main only as a remote's branch can compare too.
        ../.venv/bin/buf breaking --against "../.git#ref=$(git rev-parse "$ref"),subdir=proto"
        echo "proto-breaking: compatible with $ref"
        exit 0
    fi
done
echo "proto-breaking: nothing to compare with (no contract on main)"
