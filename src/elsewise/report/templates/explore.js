
"use strict";
// Everything is counted from what is recorded of each row: its output before and after its move,
// and what the move costs. Text of the user is only ever set as textContent.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const n = data.before.length, PAGE = 20, POINTS = 60, BINS = 24;
const columns = data.columns, ask = data.ask;
const place = new Map(data.order.map((row, k) => [row, k]));
// For each row, where each of its changed cells leads: column -> place among the column's values.
const changed = Array.from({length: n}, () => new Map());
columns.forEach((column, j) => column.moved.forEach((row, k) => changed[row].set(j, column.after[k])));

const start = () => ({amount: Infinity, group: null, only: false, blocked: new Set(),
  held: new Set(), feature: null, row: null});
let state = start();
const table = {sort: "move", up: true, page: 0, find: "", show: "all", changing: -1};
// What follows from the state: rows that may move, in order, and those that do.
let may = [], moving = new Set(), curve = [];

// Numbers as people read them.
const grouped = (value, digits) =>
  (value + 0).toLocaleString("en-US", {maximumSignificantDigits: digits});
function amount(value) {
  const size = Math.abs(value);
  if (size >= 1000) return grouped(Math.round(value), 21);
  return size !== 0 && size < 1e-4 ? value.toExponential(2) : grouped(value, 3);
}
function percent(share) {
  const hundred = 100 * share;
  if (share > 0.995 && share < 1) return `${Math.min(hundred, 99.99).toFixed(2)}%`;
  return `${grouped(hundred, Math.abs(hundred) < 1 ? 2 : 3)}%`;
}
const level = (value) => (data.probability ? percent(value) : amount(value));
function difference(value) {
  const text = data.probability ? `${grouped(100 * value, 3)} points` : amount(value);
  return value > 0 ? `+${text}` : text;
}
const count = (number, word = "row") => `${grouped(number, 21)} ${word}${number === 1 ? "" : "s"}`;
function cell(j, code) {
  const value = columns[j].values[code];
  return typeof value === "number" ? grouped(value, Number.isInteger(value) ? 21 : 4) : value;
}
const words = (row) => [...changed[row]].map(([j, after]) =>
  `${columns[j].name}: ${cell(j, columns[j].before[row])} → ${cell(j, after)}`);

// Making things; every text of the user goes through here.
function make(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
function button(text, action, attributes = {}) {
  const made = make("button", text, {type: "button", ...attributes});
  made.addEventListener("click", action);
  return made;
}
const line = (cells, attributes) => {
  const made = make("tr", "", attributes);
  made.append(...cells);
  return made;
};
function heading(content) {
  const made = make("th", "", {scope: "row"});
  made.append(content);
  return made;
}

// What is counted.
const inGroup = (row) => state.group === null || state.group.holds(row);
const sum = (values) => values.reduce((total, value) => total + value, 0);
function tally(rows) {
  let counted = 0, countedBefore = 0, output = 0, before = 0, squares = 0, moved = 0;
  for (const row of rows) {
    const goes = moving.has(row);
    before += data.before[row];
    output += goes ? data.after[row] : data.before[row];
    if (goes) { squares += data.cost[row]; moved += 1; }
    if (ask.kind === "share") {
      counted += (goes ? ask.counts_after : ask.counts_before)[row];
      countedBefore += ask.counts_before[row];
    }
  }
  const share = (value) => value / (rows.length || 1);
  return {rows: rows.length, counted: share(counted), countedBefore: share(countedBefore), moved,
    squares, mean: share(output), before: share(before)};
}
const everyRow = Array.from({length: n}, (_, row) => row);
const outputs = (goes) => everyRow.map((row) => (goes(row) ? data.after : data.before)[row]);
function distance(values) {
  if (!ask.partners) return null;
  const sorted = Float64Array.from(values).sort();
  let squared = ask.spread[0];
  for (let k = 0; k < n; k++) squared += ask.weights[k] * (sorted[k] - ask.partners[k]) ** 2;
  return Math.sqrt(Math.max(squared, 0));
}
// What the frontier is about: a share, a mean or a distance.
const measured = ask.kind !== "distance" || Boolean(ask.partners);
const meanBefore = sum(data.before) / n;
const asMean = (total) => total / n - (ask.relative ? meanBefore : 0);
const falling = ask.kind === "distance" || ask.falling;
function ok(value) {
  if (ask.kind === "share" && ask.asked === null) return value >= 1;
  if (!measured || ask.asked === null) return null;
  // Outputs are on the page with six digits, shares are counted.
  const slack = ask.kind === "share" ? 1e-9 : 1e-6 * Math.max(Math.abs(ask.asked), Math.abs(meanBefore));
  return falling ? value <= ask.asked + slack : value >= ask.asked - slack;
}
function number(value) {
  if (ask.kind === "share") return percent(value);
  if (ask.kind === "mean") return ask.relative ? difference(value) : level(value);
  return measured ? amount(value) : level(value);
}
// The frontier: after k of the rows that may move, how far rows moved and what is reached.
function frontier() {
  const stride = ask.kind === "distance" ? Math.max(1, Math.ceil(may.length / POINTS)) : 1;
  const gone = new Set(), found = [];
  let squares = 0;
  let counted = ask.kind === "share" ? sum(ask.counts_before) : 0;
  let total = sum(data.before);
  for (let k = 0; k <= may.length; k++) {
    if (k > 0) {
      const row = may[k - 1];
      gone.add(row);
      squares += data.cost[row];
      total += data.after[row] - data.before[row];
      if (ask.kind === "share") counted += ask.counts_after[row] - ask.counts_before[row];
    }
    if (k % stride && k !== may.length) continue;
    const reach = ask.kind === "share" ? counted / n
      : ask.kind === "distance" && measured ? distance(outputs((row) => gone.has(row)))
      : asMean(total);
    found.push({k, move: Math.sqrt(squares / n), reach});
  }
  return found;
}

// Showing it.
function choose() {
  const passes = (row) => !state.held.has(row) && (!state.only || inGroup(row))
    && ![...changed[row].keys()].some((j) => state.blocked.has(j));
  may = data.order.filter(passes);
  curve = frontier();
  show();
}
function show() {
  const amountNow = Math.min(state.amount, may.length);
  moving = new Set(may.slice(0, amountNow));
  $("amount").max = may.length;
  $("amount").value = amountNow;
  const said = `${grouped(amountNow, 21)} of ${count(may.length)} that may move`;
  $("amount-words").textContent = said;
  $("amount").setAttribute("aria-valuetext", said);
  showVerdict();
  showFrontier(amountNow);
  showFacts();
  showFeatures();
  showHistogram();
  showRows();
  showOne();
}
function reachNow() {
  const all = tally(everyRow);
  if (ask.kind === "share") return all.counted;
  if (ask.kind === "distance" && measured) return distance(outputs((row) => moving.has(row)));
  return asMean(all.mean * n);
}
const whole = () => moving.size === data.order.length;
function showVerdict() {
  const value = reachNow(), good = ok(value), way = falling ? "at most" : "at least";
  const asked = ask.asked === null ? (ask.kind === "share" ? "all of them" : null)
    : `${ask.every || ask.kind !== "distance" || measured ? `${way} ` : ""}${number(ask.asked)}`;
  const mark = good === null ? "" : good ? "✓ Reached: " : "✗ Not reached: ";
  const what = ask.kind === "share" ? `${number(value)} of ${count(n)} ${ask.what}`
    : ask.kind === "mean" ? `mean ${ask.what}${ask.relative ? " moved by" : ""} ${number(value)}`
    : measured ? `output distance ${number(value)}` : `mean ${data.output} ${number(value)}`;
  $("now").className = `card${good === null ? "" : good ? " good" : " bad"}`;
  $("verdict").textContent = `${mark}${what}${asked === null ? "" : `, asked: ${asked}`}`;
  const part = whole() ? "This is the whole answer." : "This is a part of the answer, counted on these rows and not certified.";
  const shown = n < data.all ? ` A random ${count(n)} of ${grouped(data.all, 21)} are on this page, and every number is counted on them.` : "";
  const all = tally(everyRow);
  const far = all.moved ? `, each by ${amount(Math.sqrt(all.squares / all.moved))} standard deviations (root mean square)` : "";
  $("sentence").textContent = `${count(all.moved)} move${all.moved === 1 ? "s" : ""}${far}. ${part}${shown}`;
}
function ticks(low, high) {
  const raw = (high - low) / 5, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((k) => k >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step + 0);
  return found;
}
function axis(frame, side, values, scale, text) {
  for (const old of frame.querySelectorAll(`.tick.${side}`)) old.remove();
  for (const value of values) {
    const made = make("span", text(value), {class: `tick ${side}`});
    made.style[side === "x" ? "left" : "bottom"] = `${scale(value)}%`;
    frame.append(made);
  }
}
let toX = () => 0;
function showFrontier(k) {
  const reaches = curve.map((point) => point.reach);
  if (ask.asked !== null && measured) reaches.push(ask.asked);
  let low = Math.min(...reaches), high = Math.max(...reaches);
  const room = 0.08 * (high - low) || 0.1 * Math.abs(high) || 1;
  low -= room; high += room;
  if (ask.kind === "share") { low = Math.max(low, 0); high = Math.min(high, 1); }
  const far = curve[curve.length - 1].move || 1;
  toX = (move) => 100 * move / far;
  const toY = (value) => 100 * (value - low) / (high - low);
  const at = (point) => `${toX(point.move).toFixed(2)} ${(100 - toY(point.reach)).toFixed(2)}`;
  $("curve").setAttribute("d", `M${curve.map(at).join("L")}`);
  const near = curve.reduce((a, b) => (Math.abs(b.k - k) < Math.abs(a.k - k) ? b : a));
  const here = {move: Math.sqrt(sum([...moving].map((row) => data.cost[row])) / n), reach: reachNow()};
  $("point").setAttribute("d", `M${at(near.k === k ? near : here)}h0`);
  const line_ = ask.asked !== null && measured ? 100 - toY(ask.asked) : null;
  $("asked-line").setAttribute("d", line_ === null ? "" : `M0 ${line_}H100`);
  axis($("frontier"), "y", ticks(low, high), toY, number);
  axis($("frontier"), "x", ticks(0, far), toX, amount);
  const y = ask.kind === "share" ? `share of rows ${ask.what}` : ask.kind === "mean"
    ? `mean ${ask.what}${ask.relative ? " moved by" : ""}` : measured ? "output distance" : `mean ${data.output}`;
  $("frontier-y").textContent = `${y}${line_ === null ? "" : `; dashed: asked, ${number(ask.asked)}`}`;
  $("frontier-x").textContent = "how far rows move: root mean square over all rows, in standard deviations";
  $("frontier").setAttribute("aria-label", `${y} against how far rows move; now ${number(here.reach)} at ${amount(here.move)}`);
}
function showFacts() {
  const rows = everyRow.filter(inGroup), part = tally(rows), all = tally(everyRow);
  const tiles = (what, found) => [
    [`rows that move, ${what}`, grouped(found.moved, 21), `of ${count(found.rows)}`],
    [`mean ${data.output}, ${what}`, level(found.mean), `${level(found.before)} before`],
    ...(ask.kind === "share" ? [[`rows ${ask.what}, ${what}`, percent(found.counted),
      `${percent(found.countedBefore)} before`]] : []),
  ];
  const made = [...tiles("all", all), ...(state.group === null || !rows.length ? [] : tiles("this group", part))];
  $("facts").replaceChildren(...made.map(([name, value, note]) => {
    const box = make("div");
    box.append(make("dt", name), make("dd", value), make("dd", note, {class: "note"}));
    return box;
  }));
}
function showFeatures() {
  columns.forEach((column, j) => {
    const parts = featureParts.get(j);
    if (!parts) return;
    const now = column.moved.filter((row) => moving.has(row)).length;
    parts.rows.textContent = `${grouped(now, 21)} of ${grouped(column.moved.length, 21)}`;
    parts.name.setAttribute("aria-pressed", String(state.feature === j));
    parts.may.checked = !state.blocked.has(j);
  });
  $("feature").hidden = state.feature === null;
  if (state.feature !== null) showMoves(state.feature);
}
function showMoves(j) {
  const column = columns[j], all = new Map();
  const gap = (row) => column.values[changed[row].get(j)] - column.values[column.before[row]];
  const gaps = column.moved.map(gap).filter(Number.isFinite);
  const low = Math.min(...gaps), high = Math.max(...gaps), distinct = new Set(gaps).size;
  const width = (high - low) / 8;
  const name = (row) => {
    const by = column.numeric ? gap(row) : NaN;
    if (!Number.isFinite(by)) return [`${cell(j, column.before[row])} → ${cell(j, changed[row].get(j))}`, 0];
    if (distinct <= 8) return [difference_(by), by];
    const bin = Math.min(Math.floor((by - low) / width), 7);
    return [`${difference_(low + bin * width)} to ${difference_(low + (bin + 1) * width)}`, bin];
  };
  const difference_ = (value) => (value > 0 ? `+${amount(value)}` : amount(value));
  for (const row of column.moved) {
    const [text, key] = name(row);
    const entry = all.get(text) ?? {key, rows: 0, now: 0};
    entry.rows += 1;
    entry.now += moving.has(row) ? 1 : 0;
    all.set(text, entry);
  }
  const found = [...all].sort((a, b) => (a[1].key - b[1].key) || (b[1].rows - a[1].rows)).slice(0, 12);
  const most = Math.max(...found.map(([, entry]) => entry.rows));
  $("feature-title").textContent = `How ${column.name} moves`;
  $("feature-what").textContent = column.numeric ? "change" : "from → to";
  $("moves").replaceChildren(...found.map(([text, entry]) => {
    const bar = make("td");
    bar.append(make("progress", "", {max: most, value: entry.now, "aria-label": text}), ` ${grouped(entry.now, 21)} of ${grouped(entry.rows, 21)}`);
    return line([make("th", text, {scope: "row"}), bar]);
  }));
}
function showHistogram() {
  const all = data.before.concat(data.after), low = all.reduce((a, b) => Math.min(a, b));
  const high = all.reduce((a, b) => Math.max(a, b)) || 1, width = (high - low) / BINS || 1;
  const bins = (values) => {
    const found = new Array(BINS).fill(0);
    for (const value of values) found[Math.min(Math.floor((value - low) / width), BINS - 1)] += 1;
    return found;
  };
  const rows = everyRow.filter(inGroup);
  const before = bins(rows.map((row) => data.before[row]));
  const now = bins(rows.map((row) => (moving.has(row) ? data.after : data.before)[row]));
  const after = bins(rows.map((row) => data.after[row]));
  const top = Math.max(...before, ...after, ...now, 1), step = 100 / BINS;
  const up = (value) => (100 - 100 * value / top).toFixed(2);
  $("bars-before").setAttribute("d", before.map((value, k) => `M${k * step} 100V${up(value)}h${step}V100Z`).join(""));
  $("bars-now").setAttribute("d", now.map((value, k) => `${k ? "L" : "M"}${(k * step).toFixed(2)} ${up(value)}h${step.toFixed(2)}`).join(""));
  const text = `${data.output}, ${state.group === null ? "all rows" : "rows of the group"}`;
  $("histogram-x").textContent = text;
  axis($("histogram"), "x", ticks(low, high), (value) => 100 * (value - low) / (high - low || 1), level);
  $("histogram").setAttribute("aria-label", `How many rows have which ${text}, before and now`);
}

// The table of rows.
const HEADS = [["row", "row"], ["before", "before"], ["after", "after"], ["gain", "difference"],
  ["move", "move (SD)"], ["state", "now"]];
const keys = {
  row: (row) => row, before: (row) => data.before[row], after: (row) => data.after[row],
  gain: (row) => data.after[row] - data.before[row], move: (row) => place.get(row),
  state: (row) => (moving.has(row) ? 0 : 1),
};
function listed() {
  const wanted = table.find.trim().toLowerCase();
  const fits = (row) => inGroup(row) && (table.changing < 0 || changed[row].has(table.changing))
    && (table.show === "all" || moving.has(row) === (table.show === "moves"))
    && (!wanted || `${data.labels[row]} ${words(row).join(" ")}`.toLowerCase().includes(wanted));
  const key = table.sort === "move" ? (row) => data.cost[row] : keys[table.sort];
  const sign = table.up ? 1 : -1;
  return data.order.filter(fits).sort((a, b) => sign * (key(a) - key(b)) || place.get(a) - place.get(b));
}
function showRows() {
  const rows = listed(), pages = Math.max(1, Math.ceil(rows.length / PAGE));
  table.page = Math.min(table.page, pages - 1);
  const first = table.page * PAGE, some = rows.slice(first, first + PAGE);
  $("count").textContent = rows.length
    ? `${grouped(first + 1, 21)} to ${grouped(first + some.length, 21)} of ${count(rows.length)}`
    : "No row fits.";
  $("back").disabled = table.page === 0;
  $("next").disabled = table.page >= pages - 1;
  for (const head of document.querySelectorAll("#table thead th[data-sort]"))
    head.setAttribute("aria-sort", head.dataset.sort !== table.sort ? "none" : table.up ? "ascending" : "descending");
  const focused = document.activeElement?.dataset?.row;
  $("rows").replaceChildren(...some.map((row) => {
    const goes = moving.has(row);
    const name = heading(button(data.labels[row], () => open(row), {"data-row": row, "aria-pressed": String(state.row === row)}));
    const numbers = [level(data.before[row]), level(data.after[row]), difference(keys.gain(row)), amount(Math.sqrt(data.cost[row]))];
    return line([name, ...numbers.map((text) => make("td", text, {class: "number"})),
      make("td", goes ? "moves" : "stays"), make("td", words(row).join("; "), {class: "what"})],
    goes ? {} : {class: "stays"});
  }));
  if (focused !== undefined) $("rows").querySelector(`[data-row="${focused}"]`)?.focus();
}
function open(row) {
  state.row = row;
  show();
  $("one-title").focus();
}
function showOne() {
  const row = state.row;
  $("one").hidden = row === null;
  if (row === null) return;
  const held = state.held.has(row);
  $("one-title").textContent = `Row ${data.labels[row]}`;
  $("one-words").textContent = `${data.output}: ${level(data.before[row])} before, ${level(data.after[row])} after its move, `
    + `which is number ${grouped(place.get(row) + 1, 21)} of ${grouped(data.order.length, 21)} in order and ${amount(Math.sqrt(data.cost[row]))} `
    + `standard deviations long. Now it ${moving.has(row) ? "moves" : "stays"}.`;
  $("hold").setAttribute("aria-pressed", String(held));
  $("cells").replaceChildren(...columns.map((column, j) => {
    const after = changed[row].get(j), before = cell(j, column.before[row]);
    return line([make("th", column.name, {scope: "row"}), make("td", before),
      after === undefined ? make("td", "the same") : make("td", cell(j, after), {class: "change"})]);
  }));
}

// What can be pressed, once.
const featureParts = new Map();
columns.forEach((column, j) => {
  if (!column.moved.length) return;
  const name = button(column.name, () => { state.feature = state.feature === j ? null : j; show(); }, {"aria-pressed": "false"});
  const may_ = make("input", "", {type: "checkbox", "aria-label": `${column.name} may change`});
  may_.addEventListener("change", () => { may_.checked ? state.blocked.delete(j) : state.blocked.add(j); choose(); });
  const rows = make("td"), cell_ = make("td");
  cell_.append(may_);
  featureParts.set(j, {name, may: may_, rows});
  $("features").append(line([heading(name), cell_, rows]));
});
const groupChoices = [null];
function choices(label, found) {
  const part = make("optgroup", "", {label});
  for (const [text, holds] of found) {
    part.append(make("option", text, {value: groupChoices.length}));
    groupChoices.push({holds});
  }
  return part;
}
$("group").append(make("option", "all rows", {value: 0}));
if (data.groups.length) $("group").append(choices("rows that move alike",
  data.groups.map((who, g) => [who, (row) => data.group[row] === g])));
columns.forEach((column) => {
  if (column.numeric || column.values.length > 12) return;
  $("group").append(choices(column.name, column.values.map((value, code) =>
    [`${column.name}: ${value}`, (row) => column.before[row] === code])));
});
$("changing").append(make("option", "any feature", {value: -1}));
featureParts.forEach((_, j) => $("changing").append(make("option", columns[j].name, {value: j})));
for (const [key, text] of HEADS) {
  const head = make("th", "", {scope: "col", "aria-sort": "none", "data-sort": key});
  head.append(button(text, () => {
    table.up = table.sort === key ? !table.up : true;
    Object.assign(table, {sort: key, page: 0});
    showRows();
  }));
  $("table").tHead.rows[0].append(head);
}
$("table").tHead.rows[0].append(make("th", "what changes", {scope: "col"}));
$("ordered").textContent = ask.kind === "mean" ? "most output for the move first" : "cheapest first";

const on = (id, event, action) => $(id).addEventListener(event, action);
const move = (k) => { state.amount = k >= may.length ? Infinity : k; show(); };
on("amount", "input", () => move(Number($("amount").value)));
on("none", "click", () => move(0));
on("every", "click", () => move(Infinity));
on("few", "click", () => move((curve.find((point) => ok(point.reach)) ?? {k: Infinity}).k));
on("group", "change", () => { state.group = groupChoices[$("group").value]; table.page = 0; choose(); });
on("only", "change", () => { state.only = $("only").checked; choose(); });
on("reset", "click", () => { state = start(); $("group").value = 0; $("only").checked = false; choose(); });
on("find", "input", () => { Object.assign(table, {find: $("find").value, page: 0}); showRows(); });
on("show", "change", () => { Object.assign(table, {show: $("show").value, page: 0}); showRows(); });
on("changing", "change", () => { Object.assign(table, {changing: Number($("changing").value), page: 0}); showRows(); });
on("back", "click", () => { table.page -= 1; showRows(); });
on("next", "click", () => { table.page += 1; showRows(); });
on("hold", "click", () => { state.held.has(state.row) ? state.held.delete(state.row) : state.held.add(state.row); choose(); });
on("close", "click", () => {
  const row = state.row;
  state.row = null;
  show();
  ($("rows").querySelector(`[data-row="${row}"]`) ?? $("find")).focus();
});
function drag(event) {
  const box = $("frontier").getBoundingClientRect();
  const wanted = 100 * (event.clientX - box.left) / box.width;
  const gap = (point) => Math.abs(toX(point.move) - wanted);
  move(curve.reduce((a, b) => (gap(b) < gap(a) ? b : a)).k);
}
on("frontier", "pointerdown", (event) => { $("frontier").setPointerCapture(event.pointerId); drag(event); });
on("frontier", "pointermove", (event) => { if (event.buttons) drag(event); });
if (ask.kind === "distance" && (ask.asked === null || !measured)) $("few").hidden = true;
choose();
