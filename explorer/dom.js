// Elements are made here and nowhere else: by name, with attributes from a list, and with text that
// is text. There is no way from here to markup, a script, a style or an address outside this page.

const ATTRIBUTES = new Set([
  "id", "role", "type", "for", "name", "value", "placeholder", "autocomplete", "autocapitalize",
  "spellcheck", "inputmode", "maxlength", "minlength", "pattern", "rows", "tabindex", "datetime",
  "scope", "colspan", "title", "dir", "disabled", "required", "readonly", "open", "checked",
  "selected", "min", "max", "step", "hidden", "class",
]);
const FAMILIES = /^(aria|data)-[a-z-]+$/;
const TAGS = /^(a|article|bdi|button|canvas|caption|code|dd|details|dialog|div|dl|dt|em|fieldset|footer|form|h1|h2|h3|header|input|label|legend|li|ol|option|p|pre|progress|section|select|small|span|strong|summary|table|tbody|td|textarea|th|thead|time|tr|ul)$/;

/** The address of a page of this program: every part is encoded. */
export const route = (...parts) => `#/${parts.map((part) => encodeURIComponent(String(part))).join("/")}`;

/**
 * An element. Of the options, `to` is a list of parts of a route, `on` holds listeners; the others
 * are attributes. An attribute that is `null`, `undefined` or `false` is left out.
 */
export function h(tag, options = {}, ...children) {
  if (!TAGS.test(tag)) throw new Error(`element ${tag} is not on the list`);
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "to") {
      element.setAttribute("href", route(...value));
    } else if (ATTRIBUTES.has(name) || FAMILIES.test(name)) {
      if (value === null || value === undefined || value === false) continue;
      element.setAttribute(name, value === true ? "" : String(value));
    } else {
      throw new Error(`attribute ${name} is not on the list`);
    }
  }
  append(element, children);
  return element;
}

/** Adds nodes and texts; lists are flattened, what is not there is left out. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Puts nodes in place of what an element holds. The keyboard stays where it was, what is unfolded stays so. */
export function swap(element, ...children) {
  const held = element.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  const unfolded = new Set([...element.querySelectorAll("details[open]:not(.folded) > summary")].map((one) => one.textContent));
  element.replaceChildren();
  append(element, children);
  for (const one of element.querySelectorAll("details:not(.folded) > summary")) {
    if (unfolded.has(one.textContent)) one.parentElement.open = true;
  }
  if (held === null) return;
  for (const candidate of element.querySelectorAll("a, button, summary, input, textarea, select")) {
    if (keyOf(candidate) === held) {
      candidate.focus({ preventScroll: true });
      return;
    }
  }
}

const keyOf = (element) =>
  `${element.tagName} ${element.id} ${element.getAttribute("href") ?? ""} ${element.getAttribute("aria-label") ?? element.textContent}`;

/** A link that keeps a blob as a file: its name is the blob's id, without an ending that opens a program. */
export function fileLink(id, ...label) {
  const link = h("a", {}, ...label);
  link.setAttribute("href", `../api/blob/${encodeURIComponent(id)}`);
  link.setAttribute("download", id);
  return link;
}

/** Pixels, and nothing else of the picture that they were. */
export function pixels(bitmap, name) {
  const canvas = h("canvas", { role: "img", "aria-label": name });
  [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
  canvas.getContext("bitmaprenderer").transferFromImageBitmap(bitmap);
  return canvas;
}

const unseen = new Map();
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    unseen.get(target)();
    unseen.delete(target);
  }
}, { rootMargin: "200px" });

/** Runs a function once, when somebody is about to see the element. */
export function whenSeen(element, run) {
  unseen.set(element, run);
  watcher.observe(element);
}

const SVG = "http://www.w3.org/2000/svg";

/** A small picture of rectangles on a grid: `cells` are `{x, y, width, height}` in its units. */
export function picture(name, width, height, cells) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", name);
  svg.setAttribute("viewBox", `0 0 ${Number(width)} ${Number(height)}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  for (const cell of cells) {
    const rect = document.createElementNS(SVG, "rect");
    for (const side of ["x", "y", "width", "height"]) rect.setAttribute(side, String(Number(cell[side])));
    svg.append(rect);
  }
  return svg;
}

/** Runs a function once before the next picture, however often it is asked for. */
export function onceAFrame(run) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      run();
    });
  };
}
