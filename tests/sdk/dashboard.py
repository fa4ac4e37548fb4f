"""Reads a dashboard into the models that Grafana publishes; prints the paths that they do not keep."""

import json
import sys

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(given, kept, path=""):
    """The paths of what was given and is not kept, or not as it was."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            yield from lost(value, kept.get(key), f"{path}.{key}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for index, pair in enumerate(zip(given, kept)):
            yield from lost(*pair, f"{path}[{index}]")
    elif given != kept:
        yield path


plugins.register_default_plugins()
with open(sys.argv[1], encoding="utf-8") as file:
    dashboard = json.load(file)
models = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
print(json.dumps(sorted(lost(dashboard, models))))
