#!/bin/sh
# Lint every migration; a deployable without any has nothing to lint. Rollbacks run on a stopped system, so they are left out.
set -eu
cd "$(dirname "$0")/.."
set -- $(find resolver/src product/src -path '*/migrations/*.sql' ! -name '*.rollback.sql' | sort)
if [ $# -eq 0 ]; then
    echo "migrations: none"
    exit 0
fi
.venv/bin/squawk --config .squawk.toml "$@"
echo "migrations: $# clean"
