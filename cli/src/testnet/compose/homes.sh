#!/bin/sh
# Brings the homes in the volumes up to this folder: settings, genesis and keys. Written by
# `ombra testnet`, run by the service `homes` of compose.yaml as root in a container of its own.
# What a node writes itself (its database, what it signed last) is left alone.
set -eu

for volume in /homes/*; do
  name=${volume##*/}
  from=/testnet/$name
  if [ -f "$volume/genesis.json" ] && ! cmp -s "$from/genesis.json" "$volume/genesis.json"; then
    printf 'the volume of %s holds another chain; docker compose down -v removes all volumes\n' \
      "$name" >&2
    exit 1
  fi
  install -d -o ombra -g ombra -m 0700 "$volume" "$volume/keys" "$volume/data"
  for key in "$from"/keys/*.key; do
    install -C -o ombra -g ombra -m 0600 "$key" "$volume/keys/"
  done
  install -C -o ombra -g ombra -m 0600 "$from/config.toml" "$volume/config.toml"
  # Genesis is the sign of a complete home and comes last.
  install -C -o ombra -g ombra -m 0600 "$from/genesis.json" "$volume/genesis.json"
  printf '%s has its settings and keys\n' "$name"
done
