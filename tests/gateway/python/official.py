"""What the official package expects of the interface, with a miner that follows a script."""

import asyncio
import json

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

# Address and key come from the environment, as they do in every program.
client = OpenAI(max_retries=0, timeout=60)


def user(text):
    return [{"role": "user", "content": text}]


def ask(text, **more):
    return client.chat.completions.create(model="ombra", messages=user(text), **more)


def raises(kind, code, call):
    try:
        call()
    except kind as error:
        assert error.code == code, (code, error.code, error)
        return error
    raise AssertionError(f"expected {kind.__name__}")


# Models.
models = {model.id: model for model in client.models.list()}
assert "ombra" in models, models
assert client.models.retrieve("ombra").pricing["completion_token"] == 1

# An answer, and its price.
answer = ask("say Hello, world", max_completion_tokens=50)
choice = answer.choices[0]
assert (choice.message.content, choice.finish_reason) == ("Hello, world", "stop"), answer
assert answer.usage.completion_tokens == 7 and answer.usage.prompt_tokens == 0, answer.usage
assert answer.usage.cost_micro > 107, answer.usage
assert answer.ombra["runId"] in answer.id and answer.ombra["requestTx"] and answer.ombra["settlementTx"]

# What has no effect is said.
raw = client.chat.completions.with_raw_response.create(
    model="ombra", messages=user("say a"), temperature=0.2, seed=5, user="ada"
)
assert raw.headers["x-ombra-ignored"] == "temperature, seed, user", raw.headers
assert raw.headers["x-ombra-run-id"] == raw.parse().ombra["runId"]
assert raw.headers["x-request-id"]

# A stream.
parts = list(ask("say Hello", stream=True, stream_options={"include_usage": True}))
text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
assert text == "Hello" and parts[0].choices[0].delta.role == "assistant", parts
assert parts[-1].choices == [] and parts[-1].usage.completion_tokens == 7, parts[-1]
assert parts[-2].choices[0].finish_reason == "stop" and parts[-2].ombra["runId"], parts[-2]
assert len({part.id for part in parts}) == 1, parts
assert [part.usage for part in parts[:-1]] == [None] * (len(parts) - 1)

# A function, whole and as a stream, and its result.
tools = [
    {
        "type": "function",
        "function": {
            "name": "get-weather",
            "description": "The weather of a place",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
                "required": ["place"],
            },
        },
    }
]
wants = 'call get-weather {"place":{"city":"Rome"}}'
answer = ask(wants, tools=tools, tool_choice="required")
[call] = answer.choices[0].message.tool_calls
assert (call.type, call.function.name) == ("function", "get-weather"), call
assert json.loads(call.function.arguments) == {"place": {"city": "Rome"}}, call
assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("tool_calls", None)
with client.chat.completions.stream(model="ombra", messages=user(wants), tools=tools) as stream:
    final = stream.get_final_completion()
assert final.choices[0].message.tool_calls[0].function.name == "get-weather", final
messages = user(wants) + [
    answer.choices[0].message.model_dump(),
    {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
]
told = client.chat.completions.create(model="ombra", messages=messages, tools=tools)
assert told.choices[0].message.content == "told: sunny", told


# Structured output.
class Place(BaseModel):
    city: str
    people: int


parsed = client.chat.completions.parse(
    model="ombra", messages=user('json {"city":"Rome","people":3}'), response_format=Place
)
assert parsed.choices[0].message.parsed == Place(city="Rome", people=3), parsed

# A long prompt, which goes into a blob.
answer = ask("The long story. " * 3000 + "\nsay read it")
assert answer.choices[0].message.content == "read it", answer

# Errors are those of the package.
raises(openai.NotFoundError, "model_not_found", lambda: client.chat.completions.create(model="gpt-4o", messages=user("a")))
error = raises(openai.BadRequestError, "unsupported_parameter", lambda: ask("say a", n=2))
assert error.param == "n", error
raises(openai.AuthenticationError, "invalid_api_key", lambda: OpenAI(api_key="sk-wrong", max_retries=0).models.list())
raises(openai.InternalServerError, "no_miner", lambda: ask("ignore"))
raises(openai.InternalServerError, "run_failed_paid", lambda: OpenAI(max_retries=5).chat.completions.create(model="ombra", messages=user("fail why")))
# It is obeyed that a retry is in vain: five of them would take seconds, and five runs.
error = raises(
    openai.RateLimitError,
    "insufficient_quota",
    lambda: OpenAI(max_retries=5).chat.completions.create(model="ombra", messages=user("say a"), max_tokens=60_000),
)
assert error.response.headers["x-should-retry"] == "false"

# The package gives up earlier than the run is through, and its retry follows the same run.
late = OpenAI(max_retries=0, timeout=1.0)
raises(openai.InternalServerError, "still_running", lambda: late.chat.completions.create(model="ombra", messages=user("idle late")))


# Ten at once.
async def ten():
    async with AsyncOpenAI(max_retries=0, timeout=60) as many:
        asked = [many.chat.completions.create(model="ombra", messages=user(f"say {n}")) for n in range(10)]
        return [answer.choices[0].message.content for answer in await asyncio.gather(*asked)]


assert asyncio.run(ten()) == [str(n) for n in range(10)]
print(f"openai {openai.__version__}: all of it")
