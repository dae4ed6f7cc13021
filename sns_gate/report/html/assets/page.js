"use strict";
// What a reader does with the page: sort, filter, open a case. Texts are only ever put in as text.

function made(name, classes, ...children) {
  const element = document.createElement(name);
  element.className = classes;
  element.append(...children);
  return element;
}

// ---- the table of cases

const COLUMNS = ["rank", "case", "speedup", "detects", "baseline", "candidate", "mode", "tier"];

function casesOf(table) {
  return [...table.tBodies].map((body, index) => {
    const keys = {};
    [...body.rows[0].querySelectorAll("[data-sort]")].forEach((cell, column) => {
      const text = cell.dataset.sort;
      const number = Number(text);
      keys[COLUMNS[column]] = text !== "" && Number.isFinite(number) ? number : text;
    });
    const name = keys.case = String(body.rows[0].querySelector(".name").dataset.sort);
    return { body, index, keys, name: name.toLowerCase(), verdict: body.dataset.verdict };
  });
}

function compared(one, other) {
  if (one === "" || other === "") return (one === "") - (other === ""); // what has none comes last
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

function sort(table, cases, key, descending) {
  const sign = descending ? -1 : 1;
  const ordered = [...cases].sort((a, b) => {
    const [one, other] = [a.keys[key], b.keys[key]];
    const missing = one === "" || other === "";
    return (missing ? 1 : sign) * compared(one, other) || a.index - b.index;
  });
  table.append(...ordered.map((one) => one.body));
  for (const head of table.tHead.rows[0].cells) {
    if (head.dataset.key === key) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

function filter(cases) {
  const wanted = byId("find").value.trim().toLowerCase();
  const chips = [...document.querySelectorAll(".chip[aria-pressed=true]")];
  const verdicts = new Set(chips.map((chip) => chip.dataset.verdict));
  let shown = 0;
  for (const one of cases) {
    const fits = one.name.includes(wanted) && (!verdicts.size || verdicts.has(one.verdict));
    one.body.hidden = !fits;
    shown += fits;
  }
  byId("found").textContent = `${shown} of ${cases.length} ${cases.length === 1 ? "case" : "cases"}`;
}

function setUpTable(table) {
  const cases = casesOf(table);
  const state = { key: "rank", descending: false };
  const sortBy = (key, descending) => {
    Object.assign(state, { key, descending });
    sort(table, cases, key, descending);
  };
  for (const head of table.tHead.querySelectorAll("[data-key]")) {
    const key = head.dataset.key;
    head.querySelector("button").addEventListener("click", () => {
      sortBy(key, state.key === key && !state.descending);
      byId("order").value = key;
    });
  }
  byId("order").addEventListener("change", (event) => sortBy(event.target.value, false));
  byId("find").addEventListener("input", () => filter(cases));
  for (const chip of document.querySelectorAll(".chip")) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      filter(cases);
    });
  }
  table.addEventListener("click", (event) => {
    const button = event.target.closest(".open");
    if (button) toggle(button);
  });
  byId("tools").hidden = false;
  filter(cases);
}

// ---- a case's details, made when they are opened

async function toggle(button) {
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  const detail = byId(button.getAttribute("aria-controls"));
  detail.hidden = !open;
  const number = detail.id.replace("detail-", "");
  const holder = byId(`figure-${number}`);
  const place = detail.querySelector(".figures");
  if (!open || !holder || place.dataset.made) return;
  place.dataset.made = "yes";
  try {
    const figure = JSON.parse(await unpacked(holder));
    place.append(...figure.measurements.flatMap((one) => measurement(one, figure)));
  } catch (error) {
    place.append(made("p", "", `The blocks cannot be shown in this browser (${error.message}); the result file holds them.`));
  }
}

function measurement(one, figure) {
  const time = made("div", "drawing");
  const groups = made("div", "drawing");
  plot(time, aboutTime(one), () => timePlot(one, figure, time.clientWidth));
  plot(groups, aboutGroups(one), () => groupPlot(one, figure, groups.clientWidth));
  return [
    ...(one.title ? [made("h3", "", one.title)] : []),
    made("figure", "", made("figcaption", "", captionOf(one, figure)), time),
    made("figure", "", made("figcaption", "",
      "The same blocks by process and by placement: a dot is a block's speedup, a bar the mean of its row."), groups),
    tables(one),
  ];
}

function captionOf(one, figure) {
  const parts = ["Speedup of each pair in time order, with the clocks and what happened beside it; lines part the blocks, strong ones the placements. The grey band is the tolerance, the blue one the interval around its estimate."];
  if (figure.every > 1) parts.push(`One pair of ${figure.every} is drawn, so that the page stays small; medians and tables rest on all of them.`);
  if (one.outside) parts.push(one.outside === 1 ? "1 pair lies beyond the axis and stands at its edge." : `${one.outside} pairs lie beyond the axis and stand at its edge.`);
  return parts.join(" ");
}

function aboutTime(one) {
  const found = one.blocks.map((block) => block.speedup);
  return `Plot of the pairs of ${found.length} blocks in time order; the blocks' speedups reach from ${digits(Math.min(...found))} to ${digits(Math.max(...found))}. The table below holds the blocks.`;
}

function aboutGroups(one) {
  const rows = one.groups.map((group) => `${group.label}: ${digits(group.mean)}`);
  return `Plot of the mean speedup of each process and placement. ${rows.join(", ")}.`;
}

function tables(one) {
  const blocks = one.blocks.map((block, at) => [String(at), ...block.cells]);
  const groups = one.groups.map((group) => [group.label, String(group.blocks.length), digits(group.mean)]);
  return made("details", "", made("summary", "", "The same as tables"),
    dataTable("Blocks in time order", ["block", "placement", "baseline process", "candidate process",
      "speedup", "baseline", "candidate", "device MHz", "NVML MHz", "what happened"], blocks),
    dataTable("Processes and placements", ["which", "blocks", "mean speedup"], groups));
}

function dataTable(title, heads, rows) {
  const head = made("tr", "", ...heads.map((text) => {
    const cell = made("th", "", text);
    cell.scope = "col";
    return cell;
  }));
  const body = rows.map((cells) => made("tr", "", ...cells.map((text) => made("td", "", text))));
  const table = made("table", "data", made("caption", "", title), made("thead", "", head), made("tbody", "", ...body));
  const scroll = made("div", "scroll", table);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", title);
  return scroll;
}

// ---- beginning

if (byId("table")) setUpTable(byId("table"));
if (/^#case-\d+$/.test(location.hash)) document.querySelector(`${location.hash} .open`)?.click();
