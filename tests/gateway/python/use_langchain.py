"""What LangChain's OpenAI chat model expects, with a miner that follows a script."""

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Place(BaseModel):
    """A place."""

    city: str
    people: int


@tool
def weather(place: Place) -> str:
    """The weather of a place."""
    return f"sunny in {place.city}"


# LangChain: an answer, a stream, a function with a nested schema, structured output.
chat = ChatOpenAI(model="ombra", max_retries=0, timeout=60)
answer = chat.invoke("say Hello")
assert answer.content == "Hello", answer
assert answer.usage_metadata["output_tokens"] == 7, answer.usage_metadata
assert "".join(part.content for part in chat.stream("say Hello")) == "Hello"
asked = [HumanMessage('call weather {"place":{"city":"Rome","people":3}}')]
wants = chat.bind_tools([weather]).invoke(asked)
[call] = wants.tool_calls
assert (call["name"], call["args"]) == ("weather", {"place": {"city": "Rome", "people": 3}}), call
told = weather.invoke(call)
assert isinstance(told, ToolMessage) and told.content == "sunny in Rome", told
final = chat.bind_tools([weather]).invoke(asked + [wants, told])
assert final.content == "told: sunny in Rome", final
for method in ["json_schema", "json_mode"]:
    structured = chat.with_structured_output(Place, method=method)
    place = structured.invoke('json {"city":"Rome","people":3}')
    assert place == Place(city="Rome", people=3), (method, place)
structured = chat.with_structured_output(Place, method="function_calling")
assert structured.invoke('call Place {"city":"Rome","people":3}') == Place(city="Rome", people=3)
print("LangChain: all of it")
