#!/usr/bin/env bash
# Creates the egress network, when it is missing, and starts the relay on its gateway: the one way out of a review.
# Usage: start_relay.sh IMAGE [TARGET_PORT]   the relay's image; the port of the mixed proxy on 127.0.0.1 (default 7895)
set -euo pipefail

if [ "$#" -lt 1 ] || [ "$#" -gt 2 ]; then
    sed -n '3s/^# //p' "$0" >&2
    exit 2
fi
image=$1
target=${2:-7895}
network=pypto-codex-egress
relay=pypto-codex-proxy-relay
port=17895

docker network inspect "$network" >/dev/null 2>&1 || docker network create "$network" >/dev/null
read -r gateway subnet < <(
    docker network inspect --format '{{range .IPAM.Config}}{{.Gateway}} {{.Subnet}}{{"\n"}}{{end}}' "$network"
)
docker rm --force "$relay" >/dev/null 2>&1 || true
# The host's network: the proxy listens on the host's loopback interface and nowhere else.
docker run --detach --name "$relay" --restart unless-stopped --network host \
    --read-only --cap-drop ALL --security-opt no-new-privileges \
    --pids-limit 256 --memory 128m --user 1002:1003 \
    --health-cmd "python3 -I /usr/local/libexec/proxy_relay.py --check $gateway $port" \
    --health-interval 5s --health-timeout 5s --health-retries 3 \
    "$image" \
    --listen-host "$gateway" --listen-port "$port" --allow-cidr "$subnet" --target-port "$target" >/dev/null
echo "$relay listens on $gateway:$port for $subnet"
