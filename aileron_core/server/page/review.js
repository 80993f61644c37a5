// The review page: pairs with the console, shows what waits, and signs each answer.
// The key is made here, cannot be exported, and lives in this tab's memory alone: closing or reloading ends it.
// Whatever comes from the console becomes text nodes. There is no HTML from strings, and no storage.
// Not a module: a browser asks for those with an Origin, which only the API below takes.
"use strict";

const API = "/review/api/";
const SEEN_MS = 100; // a line counts as seen when it stood still on screen this long
const SILENT_MS = 3000; // the console says something every second
const SILENCE_MS = 20; // keys closer than this come from a paste or a script
const MESSAGE_MS = 8000;
const LOST = "Connection lost. Nothing can be decided here until it is back.";
const AGAIN = `Press ${document.body.dataset.key} in the console to make a new link.`;

const $ = (id) => document.getElementById(id);
const encode = (text) => new TextEncoder().encode(text);
const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
const sha256 = async (bytes) => hex(await crypto.subtle.digest("SHA-256", bytes));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** RFC 8785 of an object whose values are strings and whole numbers. */
function canonical(flat) {
  return JSON.stringify(Object.fromEntries(Object.keys(flat).sort().map((key) => [key, flat[key]])));
}

function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

/** The pieces of a line: each a text, or a text and what it means. */
function pieces(line) {
  return (line ?? []).map((each) => (typeof each === "string" ? make("span", "text", each) : make("span", each[1], each[0])));
}

// The console

class Ended extends Error {}

async function post(route, body, headers = {}, signal = AbortSignal.timeout(30_000)) {
  const response = await fetch(API + route, {
    method: "POST", body, signal, cache: "no-store", credentials: "omit", redirect: "error",
    headers: { "content-type": "application/json", ...headers },
  });
  if (response.ok || (route === "decide" && response.status === 409)) return response;
  const said = await response.json().catch(() => ({}));
  const message = said.error?.message ?? `The console answered ${response.status}.`;
  throw response.status === 401 ? new Ended(message) : Object.assign(new Error(message), { status: response.status });
}

/** This tab as a device: it signs, with a number that only rises, one request after the other. */
class Device {
  number = 0;
  turn = Promise.resolve();

  static async pair(secret) {
    const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
    const point = await crypto.subtle.exportKey("raw", keys.publicKey);
    const random = crypto.getRandomValues(new Uint8Array(32));
    // Fixed before the console's part of the words is known: no key can be made to fit another's words.
    const commitment = await sha256(await new Blob([point, random]).arrayBuffer());
    const device = new Device();
    device.key = keys.privateKey;
    Object.assign(device, await (await post("link", JSON.stringify({ secret, commitment }))).json());
    const revealed = JSON.stringify({ device: device.device, key: hex(point), random: hex(random) });
    return Object.assign(device, await (await post("key", revealed)).json());
  }

  async sign(kind, flat) {
    const bytes = encode(`${kind}\0${canonical(flat)}`);
    return hex(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, this.key, bytes));
  }

  request(route, value, signal) {
    const answer = this.turn.then(() => this.send(route, value, signal));
    this.turn = answer.catch(() => {});
    return answer;
  }

  async send(route, value, signal) {
    const body = JSON.stringify(value);
    const [path, number] = [API + route, ++this.number];
    const hashed = await sha256(encode(body));
    const signed = { start: this.start, method: "POST", path, number, body: hashed };
    return post(route, body, {
      "aileron-device": this.device,
      "aileron-number": String(number),
      "aileron-signature": await this.sign("aileron request v1", signed),
    }, signal);
  }
}

let device = null;
let lost = false;
let sending = false;
let list = [];
let paused = false;
let open = null; // the call that is shown
let answered = ""; // the call that was decided here last
let loads = 0;
let wanted = decodeURIComponent(location.pathname).match(/^\/review\/([A-Za-z0-9-]{1,80})$/)?.[1] ?? "";
let offset = 0; // of the home's clock

// Pairing

function door(title, text, words = []) {
  document.body.dataset.screen = "door";
  [$("door").hidden, $("desk").hidden, document.querySelector("footer").hidden] = [false, true, true];
  [$("door-title").textContent, $("door-text").textContent] = [title, text];
  $("door-words").textContent = words.join(" · ");
  $("door-words").hidden = !words.length;
}

async function begin() {
  const secret = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (!crypto.subtle) return door("Not paired", "This page works at 127.0.0.1, or over https.");
  if (!secret) return door("Not paired", `This page shows and decides nothing by itself. ${AGAIN}`);
  door("Pairing …", "");
  try {
    device = await Device.pair(secret);
  } catch (error) {
    return door("Not paired", `${error.message} ${AGAIN}`);
  }
  $("device").textContent = device.words.join(" · ");
  door(
    "Are these words in your console?",
    "If they are the same there, confirm this page in the console.\nIf not, refuse it there: somebody else got hold of the link.",
    device.words,
  );
  document.title = "Confirm in the console · Aileron";
  while (device) {
    try {
      if ((await (await device.request("wait", {})).json()).confirmed) return follow();
    } catch (error) {
      if (error instanceof Ended) return end("The console refused this page, or its link ran out. Nothing was shown.");
      $("door-text").textContent = "The console does not answer. Trying again …";
      await sleep(1000);
    }
  }
}

function end(why) {
  [device, open, list] = [null, null, []];
  for (const id of ["rows", "document", "title", "who", "warnings", "said", "standing", "device", "link"]) $(id).replaceChildren();
  if ($("help").open) $("help").close();
  document.title = "Ended · Aileron";
  door("This pairing has ended", `${why} ${AGAIN}`);
}

// What waits

async function follow() {
  document.body.dataset.screen = "desk";
  document.body.dataset.view = "list";
  [$("door").hidden, $("desk").hidden] = [true, false];
  while (device) {
    const stop = new AbortController();
    try {
      await listen(await device.request("events", {}, stop.signal));
    } catch (error) {
      if (error instanceof Ended) return end("The console ended it, was closed, or heard nothing for half an hour.");
      await sleep(lost ? 1000 : 0);
    }
    stop.abort();
    lose();
    await sleep(200);
  }
}

async function listen(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    let timer;
    const silent = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error("silent")), SILENT_MS); });
    const { done, value } = await Promise.race([reader.read(), silent]).finally(() => clearTimeout(timer));
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) hear(JSON.parse(line));
  }
}

function hear(event) {
  if (lost || !$("link").textContent) {
    if (lost) say("Connected again.");
    lost = false;
    delete document.body.dataset.lost;
    $("link").textContent = "● connected";
    rest("screen");
  }
  if (event.list) showList(event.list);
}

function lose() {
  if (!device || lost) return;
  lost = true;
  document.body.dataset.lost = "";
  $("link").textContent = "○ connection lost";
  if (open) open.asked = null;
  say(LOST);
}

function showList(now) {
  const before = new Map([...$("rows").children].map((each) => [each.dataset.id, each]));
  [list, paused] = [now.waiting, now.paused];
  for (const row of list) {
    const entry = before.get(row.id) ?? newRow(row.id);
    const [effect, about, asks, time] = entry.firstChild.children;
    effect.textContent = row.effect;
    about.replaceChildren(...pieces(row.about));
    asks.replaceChildren(make("span", "", ...pieces(row.who)), make("span", "", ...pieces(row.tag)));
    time.dataset.expires = row.expires ?? "";
    if (!before.delete(row.id)) $("rows").append(entry);
  }
  for (const gone of before.values()) gone.remove();
  const all = list.length + (now.more ?? 0);
  $("waiting").textContent = all ? `Waiting (${all})` : "Waiting";
  $("nothing").hidden = list.length > 0;
  document.title = `${all ? `(${all}) ` : ""}Aileron`;
  count();
  catchUp();
}

/** Show the open call as the list has it now; the first one where none is open, and there is room. */
function catchUp() {
  if (sending) return; // what became of it is about to be said
  const row = list.find((each) => each.id === open?.id);
  const changed = row ? row.digest !== open.digest || row.version > open.version : open?.waits;
  if (changed || (open && paused !== open.paused)) load(open.id, { changed: changed && open.id !== answered });
  else if (wanted) load(wanted, { go: true });
  else if (!open && !loads && list.length && isWide()) load(list[0].id);
  wanted = "";
}

const isWide = () => matchMedia("(min-width: 56.25rem)").matches;

function newRow(id) {
  const entry = make("li", "", make("button", "", ...["effect", "about", "asks", "time"].map((name) => make("span", name))));
  entry.dataset.id = id;
  entry.firstChild.type = "button";
  entry.firstChild.addEventListener("click", () => load(id, { go: true }));
  return entry;
}

function mark() {
  for (const each of $("rows").children) {
    if (each.dataset.id === open?.id) each.firstChild.setAttribute("aria-current", "true");
    else each.firstChild.removeAttribute("aria-current");
  }
}

function left(expires) {
  if (!expires) return "";
  const seconds = Math.max(0, Math.floor((Number(expires) - Date.now() - offset) / 1000));
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")}`;
  return `${Math.floor(seconds / 86400)} d`;
}

function count() {
  for (const time of document.querySelectorAll("#rows .time")) time.textContent = left(time.dataset.expires);
  $("left").textContent = open?.waits && open.expires ? `${left(open.expires)} left` : "";
  $("left").className = open?.expires - Date.now() - offset < 60_000 ? "danger" : "";
}

// One call

async function load(id, { changed = false, go = false } = {}) {
  const mine = ++loads;
  rest("item");
  const response = await ask("item", { id });
  const bytes = response && (await response.arrayBuffer().catch(() => null));
  if (mine !== loads || !device) return;
  if (!bytes) return open?.id === id && settle(lost ? LOST : "This call is not here any more.");
  const item = JSON.parse(new TextDecoder().decode(bytes));
  const top = open?.id === id ? scrollY : 0;
  if (open?.id !== id) closePanel(); // else the rest of a reason that is being typed would press keys
  open = { ...item, paused, shown: await sha256(bytes), lines: 0, required: item.parts.reduce((sum, part) => sum + part.lines, item.lines), next: 1, seen: new Set(), asked: null };
  open.waits = list.some((each) => each.id === id);
  offset = item.now - Date.now();
  draw(item);
  if (go) document.body.dataset.view = "item";
  scrollTo(0, top);
  if (go) $("title").focus({ preventScroll: true });
  if (changed && item.answered) say(`This call was answered already: ${item.answered}.`);
  else if (changed && open.waits) say("This call changed. Look at it again.");
  rest("item");
}

/** Nothing more is decided about the call that is shown, until it is read again. */
function settle(why) {
  for (const each of ["approve", "deny"]) open[each] = { offered: false, why_not: why, ask: "" };
  refresh();
}

function draw(item) {
  const article = document.querySelector("article");
  [article.hidden, document.querySelector("footer").hidden] = [false, false];
  $("chip").textContent = item.effect;
  $("title").replaceChildren(...pieces(item.title));
  const drawn = new Date(item.now).toLocaleTimeString([], { hour12: false });
  $("who").replaceChildren(...item.who.map((line) => make("p", "", ...pieces(line))));
  $("who").lastChild?.append(make("span", "muted", ` · as of ${drawn}`));
  $("warnings").replaceChildren(...item.warnings.map((line) => make("li", "", "▲ ", ...pieces(line))));
  $("document").replaceChildren();
  unread.clear();
  inView.clear();
  watcher.disconnect();
  [place.section, place.field] = [null, null];
  append(item.blocks);
  mark();
  count();
}

const place = { section: null, field: null, bar: "", gap: "" };

function append(blocks) {
  for (const block of blocks) {
    if (block.kind === "blank") [place.field, place.gap] = [null, " gap"];
    else if (block.kind === "heading") newSection(block);
    else {
      const row = make("div", `row ${block.ground ?? ""}`, ...pieces(block.text));
      if (block.label || !place.field || place.bar !== block.bar) newField(block);
      place.field.append(row);
      if (block.see) {
        unread.set(row, { number: open.lines++, top: null, bottom: null });
        watcher.observe(row);
      }
    }
  }
  const part = open.parts[open.next - 1];
  $("more").hidden = !part;
  if (part) {
    $("more").textContent = `Show the next ${part.lines} lines`;
    watcher.observe($("more"));
  }
}

function newSection(block) {
  const title = make("h3", "", ...pieces(block?.label));
  title.id = `section-${$("document").children.length}`;
  place.section = make("dl");
  [place.field, place.gap] = [null, ""];
  const section = make("section", "", title, make("p", "", ...pieces(block?.text)), place.section);
  section.setAttribute("aria-labelledby", title.id);
  $("document").append(section);
}

function newField(block) {
  if (!place.section) newSection();
  place.bar = block.bar;
  place.field = make("dd");
  if (block.bar === "claim") place.field.append(make("span", "apart", "the agent says: "));
  const term = make("dt", block.outside ? "outside" : "", ...pieces(block.label));
  place.section.append(make("div", `field ${block.bar}${place.gap}`, term, place.field));
  place.gap = "";
}

async function more() {
  const item = open;
  const part = item?.parts[item.next - 1];
  if (!part || item.fetching || lost) return;
  item.fetching = true;
  const response = await ask("part", { id: item.id, version: item.version, n: part.n });
  const bytes = response?.ok && (await response.arrayBuffer().catch(() => null));
  item.fetching = false;
  if (!bytes || item !== open) return;
  if ((await sha256(bytes)) !== part.sha256) return say("The rest is not what this call named. Open it again.");
  item.next += 1;
  watcher.unobserve($("more"));
  append(JSON.parse(new TextDecoder().decode(bytes)).blocks);
}

// What was seen

const unread = new Map();
const inView = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (target === $("more")) isIntersecting && more();
    else if (isIntersecting) inView.add(target);
    else inView.delete(target);
  }
}, { rootMargin: "200px 0px" });
let stood = "";

function look() {
  if (document.visibilityState !== "visible" || !open || $("help").open) return;
  const at = `${scrollX} ${scrollY} ${innerWidth} ${innerHeight} ${open.shown} ${document.documentElement.scrollHeight}`;
  if (at !== stood) return void (stood = at);
  const floor = document.querySelector("footer").getBoundingClientRect().top;
  for (const row of inView) {
    const line = unread.get(row);
    const box = row.getBoundingClientRect();
    const [top, bottom] = [Math.max(0, -box.top), Math.min(box.height, floor - box.top)];
    if (!line || bottom <= top) continue;
    // A line that is higher than the screen is seen once all of it was, piece by piece.
    const joins = line.top !== null && line.width === box.width && top <= line.bottom + 1 && bottom >= line.top - 1;
    [line.top, line.bottom] = joins ? [Math.min(top, line.top), Math.max(bottom, line.bottom)] : [top, bottom];
    line.width = box.width;
    if (line.top > 1 || line.bottom < box.height - 1) continue;
    open.seen.add(line.number);
    for (const done of [unread, inView]) done.delete(row);
    watcher.unobserve(row);
  }
  refresh();
}

const unseen = () => open.required - open.seen.size;

function ranges() {
  const found = [];
  for (const number of [...open.seen].sort((one, other) => one - other)) {
    if (found.at(-1)?.[1] === number - 1) found.at(-1)[1] = number;
    else found.push([number, number]);
  }
  return found;
}

// What a press does

const CAUSES = {
  item: "Too soon: this call has just been drawn.",
  screen: "Too soon: the screen changed.",
  key: "Too soon after another key.",
  back: "Too soon: this page has just come into view.",
};
let rested = { at: 0, cause: "item" };
let saidAt = 0;

function rest(cause) {
  rested = { at: performance.now(), cause };
  refresh();
}

function say(text) {
  saidAt = performance.now();
  if ($("said").textContent !== text) $("said").textContent = text;
  refresh();
}

const isArmed = () => open && !lost && !sending && performance.now() - rested.at >= open.arm_ms;

function refresh() {
  if (!open || !device) return;
  if (!lost && !open.asked && performance.now() - saidAt > MESSAGE_MS) $("said").textContent = "";
  const missing = open.approve.offered ? unseen() : 0;
  const isAbove = unread.keys().next().value?.getBoundingClientRect().top < 0;
  const standing = missing
    ? [make("span", "attn", `${isAbove ? "▲" : "▼"} ${missing} of ${open.required} lines not seen yet.`)]
    : pieces(paused ? [[open.approve.why_not, "attn"]] : open.status);
  const text = standing.map((each) => each.textContent).join("");
  if ($("standing").textContent !== text) $("standing").replaceChildren(...standing);
  const asks = !open.asked && (missing > 0 || open.approve.ask !== "");
  for (const verdict of ["approve", "deny"]) {
    $(verdict).setAttribute("aria-disabled", String(lost || sending || !open[verdict].offered));
  }
  $("approve").firstChild.textContent = asks && open.approve.offered ? "Approve…" : "Approve";
  $("approve").classList.toggle("decides", Boolean(open.approve.offered && !asks && isArmed()));
}

function forget() {
  if (!open?.asked) return;
  open.asked = null;
  $("said").textContent = "";
}

function press(verdict) {
  if (!open || sending || !$("title").offsetParent) return; // a narrow page shows the list alone
  const name = verdict === "approve" ? "Approve" : "Deny";
  if (lost) return say(LOST);
  if (!open[verdict].offered) return say(open[verdict].why_not);
  if (verdict === "deny" && $("panel").hidden) return openPanel();
  if (!isArmed()) return say(`${CAUSES[rested.cause]} Press ${name} again.`);
  // The home asks once. After another key it is asked again here.
  const again = verdict === "approve" && open.question && !open.asked && (unseen() || open.approve.ask);
  if (again) return askAgain();
  decide(verdict, verdict === "deny" ? $("reason").value : "");
}

function askAgain() {
  open.asked = open.question;
  rest("screen");
  say(open.question.ask);
}

async function decide(verdict, reason) {
  const [item, seen, missing] = [open, ranges(), unseen()];
  sending = true;
  say("Sending your decision …");
  const decision = {
    home: item.home, approval: item.id, digest: item.digest, shown: item.shown, verdict,
    reason: await sha256(encode(reason)), unseen: missing, device: device.device, at: Date.now() + offset,
  };
  const signature = await device.sign("aileron decision v1", decision);
  const response = await ask("decide", { decision, signature, reason, seen });
  const answer = response && (await response.json().catch(() => ({})));
  sending = false;
  if (!answer || !device || item !== open) return catchUp();
  if (answer.ask) {
    item.question = answer;
    return askAgain();
  }
  closePanel();
  item.asked = null;
  if (!response.ok) {
    say(answer.error?.message ?? "The console did not take it. Nothing was decided.");
    return load(item.id);
  }
  answered = item.id;
  settle("You have decided this.");
  say(verdict === "approve" ? "✓ Approved." : "✗ Denied.");
  catchUp();
}

/** Return the answer to a request; say what went wrong where there is none. */
async function ask(route, value) {
  try {
    return await device.request(route, value);
  } catch (error) {
    if (error instanceof Ended) end("The console ended it, or was closed.");
    else say(error.status ? error.message : route === "decide" ? "No answer came: the list will say what became of it." : LOST);
    return null;
  }
}

function openPanel() {
  [$("buttons").hidden, $("panel").hidden] = [true, false];
  $("reason").value = "";
  $("reason").focus();
}

function closePanel() {
  if ($("panel").hidden) return;
  [$("buttons").hidden, $("panel").hidden] = [false, true];
  $("title").focus({ preventScroll: true });
}

function step(by) {
  const at = list.findIndex((each) => each.id === open?.id);
  const next = list[at < 0 ? 0 : at + by];
  if (next) load(next.id, { go: true });
}

function toList() {
  document.body.dataset.view = "list";
  const row = [...$("rows").children].find((each) => each.dataset.id === open?.id) ?? $("rows").firstChild;
  row?.firstChild.focus();
}

// Hands

const KEYS = {
  a: () => press("approve"),
  d: () => press("deny"),
  j: () => step(1),
  k: () => step(-1),
  "?": () => $("help").showModal(),
  Escape: toList,
};
let lastKey = 0;

document.addEventListener("keydown", async (event) => {
  if (!event.isTrusted || !device || event.ctrlKey || event.altKey || event.metaKey || event.isComposing || $("help").open) return;
  const typing = event.target === $("reason");
  const deciding = typing ? event.key === "Enter" : event.key === "a" || event.key === "d";
  const clicks = event.target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ");
  const before = performance.now() - lastKey;
  const mine = (lastKey = performance.now());
  const key = typing && event.key === "Escape" ? closePanel : typing ? event.key === "Enter" && (() => press("deny")) : KEYS[event.key];
  if (event.key !== "a" && !(clicks && event.target.id === "approve")) forget();
  if (!key) return clicks && !event.repeat && before >= SILENCE_MS ? undefined : rest("key");
  event.preventDefault();
  if (event.repeat && deciding) return;
  if (deciding) {
    // Silence around it: what comes in one burst with other keys was not pressed by a hand.
    if (before < SILENCE_MS) return say("Several keys arrived at once. Nothing was decided.");
    await sleep(SILENCE_MS);
    if (lastKey !== mine) return say("Several keys arrived at once. Nothing was decided.");
  }
  key();
  rest("key");
});

for (const [id, does] of [
  ["approve", () => press("approve")], ["deny", () => press("deny")], ["send", () => press("deny")],
  ["cancel", closePanel], ["back", toList], ["more", more], ["close", () => $("help").close()],
]) {
  $(id).addEventListener("click", (event) => {
    if (!event.isTrusted) return;
    if (id !== "approve") forget();
    does();
  });
}
document.addEventListener("visibilitychange", () => rest("back"));
addEventListener("focus", () => rest("back"));
addEventListener("resize", () => rest("screen"));
addEventListener("pageshow", (event) => event.persisted && lose());
setInterval(look, SEEN_MS);
setInterval(count, 1000);
begin();
