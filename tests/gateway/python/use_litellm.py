"""What litellm expects, with a miner that follows a script."""

import json
import os

# Otherwise it fetches the prices of models from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm

litellm.num_retries = 0
options = {"model": "openai/ombra", "api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
say = [{"role": "user", "content": "say Hello"}]
answer = litellm.completion(messages=say, **options)
assert answer.choices[0].message.content == "Hello", answer
parts = list(litellm.completion(messages=say, stream=True, **options))
assert "".join(part.choices[0].delta.content or "" for part in parts if part.choices) == "Hello", parts
functions = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
call = [{"role": "user", "content": 'call f {"a":1}'}]
answer = litellm.completion(messages=call, tools=functions, **options)
[called] = answer.choices[0].message.tool_calls
assert json.loads(called.function.arguments) == {"a": 1}, called
try:
    litellm.completion(messages=say, max_tokens=60_000, **options)
    raise AssertionError("expected a RateLimitError")
except litellm.RateLimitError:
    pass
print("litellm: all of it")
