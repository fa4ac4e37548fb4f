// A page of the program while it is open: what it shows, and what ends when one leaves it.

import { h, onceAFrame, swap } from "./dom.js";
import { node, on, subscribe } from "./live.js";
import { loading, problem } from "./parts.js";

export class Page {
  #stop = new AbortController();
  #kept = new Map();

  constructor(main, aloud) {
    this.main = main;
    this.aloud = aloud;
  }

  /** Ends with the page; for requests. */
  get signal() {
    return this.#stop.signal;
  }

  get isLeft() {
    return this.#stop.signal.aborted;
  }

  leave() {
    this.#stop.abort();
  }

  /** Runs when the page is left. */
  atEnd(run) {
    if (this.isLeft) run();
    else this.#stop.signal.addEventListener("abort", run, { once: true });
  }

  /** Shows a heading and what is below it. */
  show(title, ...children) {
    this.title(typeof title === "string" ? title : title.textContent);
    swap(this.main, h("h1", {}, title), children);
  }

  title(text) {
    document.title = `${text} · Ombra explorer`;
  }

  onBlock(run) {
    this.atEnd(on("block", run));
  }

  /** Runs at each block that is seen while the node gives no WebSocket: then nothing else is told. */
  onPolled(run) {
    this.onBlock(() => {
      if (node.state === "polling") run();
    });
  }

  /** What was made first for a key: it stays as it is when the page around it is drawn anew. */
  keep(key, make) {
    if (!this.#kept.has(key)) this.#kept.set(key, make());
    return this.#kept.get(key);
  }

  subscribe(kind, filter, run) {
    this.atEnd(subscribe(kind, filter, run));
  }

  /** Runs whenever the node answers again; what happened meanwhile may not be known. */
  onReturn(run) {
    let before = node.state;
    this.atEnd(on("state", (state) => {
      const isBack = state === "live" && before !== "live";
      before = state;
      if (isBack) run();
    }));
  }

  every(ms, run) {
    const timer = setInterval(run, ms);
    this.atEnd(() => clearInterval(timer));
  }

  /**
   * A part of the page that is loaded and drawn now, and again when `refresh` of the answer is called,
   * at most once in `pause` milliseconds. That is when the node is back, and with `follow` at every block.
   * What was drawn stays until there is something newer.
   */
  part({ load, draw, pause = 1000, follow = false }) {
    const box = h("div", { class: "part", "aria-busy": true }, loading());
    const state = { isBusy: false, isWanted: false, isDrawn: false, timer: null, began: 0 };
    const paint = (...nodes) => {
      const put = onceAFrame(() => {
        if (!this.isLeft) swap(box, ...nodes);
      });
      if (state.isDrawn && !document.hidden) put();
      else swap(box, ...nodes);
    };
    const run = async () => {
      [state.isBusy, state.isWanted, state.began] = [true, false, Date.now()];
      try {
        const loaded = await load(this.signal);
        if (this.isLeft) return;
        paint(draw(loaded));
        state.isDrawn = true;
      } catch (error) {
        if (this.isLeft) return;
        if (!state.isDrawn || error.isNotFound) paint(problem(error, refresh));
        if (!(error.kind)) console.error(error);
      } finally {
        state.isBusy = false;
        box.removeAttribute("aria-busy");
        if (state.isWanted && !this.isLeft) refresh();
      }
    };
    const refresh = () => {
      state.isWanted = true;
      if (state.isBusy || state.timer !== null || this.isLeft) return;
      const wait = Math.max(0, state.began + pause - Date.now());
      state.timer = setTimeout(() => {
        state.timer = null;
        if (!this.isLeft) run();
      }, wait);
    };
    if (follow) this.onBlock(refresh);
    this.onReturn(refresh);
    this.atEnd(() => clearTimeout(state.timer));
    run();
    return { box, refresh };
  }
}
