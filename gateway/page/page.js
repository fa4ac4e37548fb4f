// What a key has spent, and its last requests. The key stays in this tab.

const MICRO = 1_000_000;
const STORED = "key";

const at = (id) => document.getElementById(id);
const ombra = (micro) => (micro === null ? "no budget" : `${(micro / MICRO).toFixed(6)} OMBRA`);

/** Asks the gateway; throws its sentence where it refuses. */
async function ask(path, key) {
  const answer = await fetch(path, { headers: { authorization: `Bearer ${key}` } });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error?.message ?? `status ${answer.status}`);
  return body;
}

/** A row of cells: texts, or elements. */
function row(cells) {
  const line = document.createElement("tr");
  for (const cell of cells) {
    const box = document.createElement("td");
    box.append(cell);
    line.append(box);
  }
  return line;
}

function link(run, url) {
  if (!run) return "–";
  const anchor = document.createElement("a");
  anchor.textContent = `${run.slice(0, 12)}…`;
  anchor.href = url;
  anchor.rel = "noreferrer";
  return anchor;
}

function show(key, requests) {
  at("name").textContent = key.name;
  const facts = [
    ["Left", ombra(key.left_micro)],
    ["Spent", ombra(key.spent_micro)],
    ["Reserved", ombra(key.reserved_micro)],
    ["Under way", String(key.open_requests)],
  ];
  at("standing").replaceChildren(
    ...facts.flatMap(([name, value]) => {
      const [term, fact] = [document.createElement("dt"), document.createElement("dd")];
      [term.textContent, fact.textContent] = [name, value];
      return [term, fact];
    }),
  );
  const day = ({ day: number, requests: count, spent_micro: spent, reserved_micro: reserved }) =>
    row([new Date(number * 86_400_000).toISOString().slice(0, 10), String(count), ombra(spent), ombra(reserved)]);
  at("days").replaceChildren(...key.days.map(day));
  const request = ({ created, model, state, cost_micro: cost, run, url }) =>
    row([new Date(created * 1_000).toISOString().slice(0, 19), model, state, ombra(cost), link(run, url)]);
  at("requests").replaceChildren(...requests.data.map(request));
  at("told").hidden = false;
}

async function refresh() {
  const key = sessionStorage.getItem(STORED);
  if (!key) return;
  try {
    show(await ask("v1/key", key), await ask("v1/requests", key));
    at("fault").textContent = "";
  } catch (error) {
    at("told").hidden = true;
    at("fault").textContent = error.message;
  }
}

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(STORED, at("key").value.trim());
  void refresh();
});
void refresh();
