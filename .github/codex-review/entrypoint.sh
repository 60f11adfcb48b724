#!/bin/sh
# Starts the agent with a credential from stdin that lives in memory and vanishes soon after its first read.
set -eu
umask 077

install -m 0600 /etc/codex-review/config.toml "$CODEX_HOME/config.toml"
cat > "$CODEX_HOME/auth.json"

# The watch must be established before the agent can read the file, or the first read goes unnoticed.
watch="$CODEX_HOME/credential-watch.log"
(
    inotifywait -e close_nowrite "$CODEX_HOME/auth.json" > /dev/null 2> "$watch" || true
    sleep 1
    rm -f "$CODEX_HOME/auth.json" "$watch"
) < /dev/null &
tries=0
until grep -q 'Watches established' "$watch" 2> /dev/null; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ]; then
        rm -f "$CODEX_HOME/auth.json"
        echo "the credential watcher did not start" >&2
        exit 1
    fi
    sleep 0.1
done

exec codex "$@" < /dev/null
