#!/usr/bin/env bash
# Runs the nodes of this testnet as plain processes. Written by `ombra testnet --local`.
#
#   net start [NAME...]     starts all nodes, or these
#   net stop [NAME...]      stops them in order
#   net status              shows which nodes run, and the heights of their chains
#   net log NAME            shows what a node logged
#
# Set OMBRA to use another program than the one that wrote this file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly OMBRA=${OMBRA:-@OMBRA@}
# name=address of JSON-RPC
readonly NODES=(@NODES@)
# How long a node may take to start or stop, in tenths of a second.
readonly PATIENCE=600

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

names() { printf '%s\n' "${NODES[@]%%=*}"; }

is_node() { names | grep -qxF -- "$1"; }

# The process of a node, if it runs. A number that another process has by now does not count.
pid_of() {
  local pid
  pid=$(cat "$1/node.pid" 2>/dev/null) || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "start --home $1 " || return 1
  printf '%s\n' "$pid"
}

start_one() {
  local name=$1 waited=0
  if pid_of "$name" >/dev/null; then
    printf '%s is already running\n' "$name"
    return
  fi
  rm -f "$name/endpoints.json"
  nohup "$OMBRA" start --home "$name" >>"$name/node.log" 2>&1 &
  printf '%s\n' $! >"$name/node.pid"
  until [ -f "$name/endpoints.json" ]; do
    waited=$((waited + 1))
    pid_of "$name" >/dev/null || [ "$waited" -lt 20 ] || fail "$name ended; see $name/node.log"
    [ "$waited" -lt "$PATIENCE" ] || fail "$name does not answer; see $name/node.log"
    sleep 0.1
  done
  printf '%s answers\n' "$name"
}

stop_one() {
  local name=$1 pid waited=0
  if ! pid=$(pid_of "$name"); then
    printf '%s is not running\n' "$name"
    return
  fi
  kill "$pid"
  while pid_of "$name" >/dev/null; do
    waited=$((waited + 1))
    [ "$waited" -lt "$PATIENCE" ] || fail "$name (process $pid) does not stop"
    sleep 0.1
  done
  rm -f "$name/node.pid"
  printf '%s stopped\n' "$name"
}

status() {
  local node name height
  for node in "${NODES[@]}"; do
    name=${node%%=*}
    if ! pid_of "$name" >/dev/null; then
      printf '%-12s stopped\n' "$name"
      continue
    fi
    height=$("$OMBRA" query chain --rpc "http://${node#*=}" --json 2>/dev/null |
      sed -n 's/.*"height":\([0-9]*\).*/\1/p') || height=
    printf '%-12s height %s\n' "$name" "${height:-unknown}"
  done
}

each() {
  local action=$1 chosen name
  shift
  if [ $# -gt 0 ]; then chosen=("$@"); else mapfile -t chosen < <(names); fi
  for name in "${chosen[@]}"; do
    is_node "$name" || fail "there is no node '$name'"
    "$action" "$name"
  done
}

command=${1:-help}
[ $# -eq 0 ] || shift
case "$command" in
  start) each start_one "$@" ;;
  stop) each stop_one "$@" ;;
  status) status ;;
  log)
    is_node "${1:-}" || fail "which node?"
    cat "$1/node.log"
    ;;
  *)
    sed -n '2,9s/^#.\{0,1\}//p' "${BASH_SOURCE[0]##*/}" >&2
    exit 2
    ;;
esac
