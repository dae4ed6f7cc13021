"use strict";
// The plots of a case's blocks, in the colours that the page has now.

const byId = (id) => document.getElementById(id);

const digits = (speedup) => speedup.toFixed(4);

async function unpacked(holder) {
  const bytes = Uint8Array.from(atob(holder.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

let library = null;

// The library starts once, when the first plot is wanted.
function started() {
  library ??= (async () => {
    const script = document.createElement("script");
    script.textContent = await unpacked(byId("library"));
    document.head.append(script);
    if (!window.Plotly) throw new Error("the library did not start");
    return window.Plotly;
  })();
  return library;
}

const NARROW = 600; // pixels; there the plots' words go where they leave room
const drawn = [];

// Draws into a place now and whenever its width or the page's colours change; hidden places wait.
function plot(place, about, figure) {
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", about);
  place.textContent = "Drawing…";
  let width = 0;
  const draw = async () => {
    if (!place.clientWidth) return;
    width = place.clientWidth;
    const plotly = await started();
    if (!place.dataset.drawn) place.textContent = "";
    const { data, layout } = figure();
    await plotly.react(place, data, { ...layout, width }, { displayModeBar: false, doubleClick: "reset" });
    place.dataset.drawn = "yes";
  };
  const failed = (error) => {
    place.textContent = `The plot cannot be drawn in this browser (${error.message}); the table below holds the same.`;
    place.removeAttribute("role");
    place.removeAttribute("aria-label");
  };
  new ResizeObserver(() => Math.abs(place.clientWidth - width) > 1 && draw().catch(failed)).observe(place);
  drawn.push(() => {
    width = 0;
    draw().catch(failed);
  });
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function styled(layout, width) {
  const touch = matchMedia("(pointer: coarse)").matches;
  const axis = { gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, automargin: true,
    fixedrange: touch, tickfont: { size: 11.5 } };
  for (const name of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
    layout[name] = { ...axis, ...layout[name] };
  }
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: touch ? false : "zoom",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("quiet") },
    margin: { l: 10, r: 10, t: 8, b: 8 }, hovermode: "closest", showlegend: false,
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("quiet"), font: { color: colour("text"), size: 12 } },
    ...layout,
  };
}

function band(axes, from, to, fill, opacity) {
  return { type: "rect", layer: "below", line: { width: 0 }, fillcolor: fill, opacity, ...axes(from, to) };
}

function bands(one, figure, axes) {
  // Where the case has to be faster than the tolerance's far edge, whatever is faster will do.
  const most = figure.most > figure.least ? figure.most : one.axis[1];
  const found = [band(axes, figure.least, most, colour("band"), 0.9)];
  const line = (at, dash) => ({ type: "line", layer: "below", line: { color: colour("quiet"), width: 1, dash }, ...axes(at, at) });
  if (one.interval) {
    found.push(band(axes, one.interval[0], one.interval[2], colour("blue"), 0.22));
    found.push({ ...line(one.interval[1], "solid"), line: { color: colour("blue"), width: 1.5 } });
  }
  found.push(line(1, "dot"));
  return found;
}

const named = (block, at) => `block ${at}: baseline ${block.baseline} against candidate ${block.candidate}, placement ${block.placement}`;

// Where the pairs of a block stand on the axis of blocks.
const along = (block, at) => block.pairs.map((_, pair) => at + (pair + 0.5) / block.pairs.length);

function timePlot(one, figure, width) {
  const kinds = [...new Set(one.blocks.flatMap((block) => block.happenings.map((event) => event.kind)))].sort();
  const clocks = one.blocks.some((block) => block.baseline_mhz.length || block.nvml_mhz);
  const narrow = width < NARROW;
  const heights = [250, clocks ? 130 : 0, kinds.length ? (narrow ? 34 : 22) * kinds.length + 16 : 0];
  const gap = 18;
  const total = heights.reduce((sum, height) => sum + (height ? height + gap : 0), -gap);
  const ends = [];
  heights.reduce((top, height) => {
    ends.push([Math.max(0, 1 - (top + height) / total), 1 - top / total]);
    return top + (height ? height + gap : 0);
  }, 0);
  const layout = {
    height: total + (narrow ? 114 : 84), showlegend: true,
    legend: { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom", itemclick: false, itemdoubleclick: false, font: { size: 12 } },
    xaxis: { range: [0, one.blocks.length], showgrid: false, anchor: "free", position: 0, ...placements(one) },
    yaxis: { domain: ends[0], range: one.axis, title: { text: "speedup", font: { size: 12 } }, tickformat: ".4~f" },
    shapes: [...bands(one, figure, (from, to) => ({ xref: "paper", x0: 0, x1: 1, y0: from, y1: to })), ...borders(one)],
  };
  if (narrow) layout.yaxis.title = null;
  const data = [...pairTraces(one)];
  if (clocks) {
    layout.yaxis2 = { domain: ends[1], title: { text: "MHz", font: { size: 12 } }, tickformat: "d", nticks: 5 };
    if (narrow) layout.yaxis2.title = null;
    data.push(...clockTraces(one, narrow));
  }
  if (kinds.length) {
    layout.yaxis3 = { domain: ends[2], range: [-0.6, kinds.length - (narrow ? 0.2 : 0.4)], tickvals: kinds.map((_, at) => at), ticktext: kinds, showticklabels: !narrow };
    if (narrow) layout.annotations = kinds.map((kind, at) => ({ text: kind, x: 0, xref: "paper", y: at, yref: "y3", xanchor: "left", yanchor: "bottom", yshift: 5, showarrow: false, font: { size: 11 } }));
    data.push(eventTrace(one, kinds, width));
  }
  return { data, layout: styled(layout, width) };
}

// A tick in the middle of each run of blocks at one placement.
function placements(one) {
  const runs = [];
  one.blocks.forEach((block, at) => {
    const last = runs.at(-1);
    if (last && last.placement === block.placement) last.to = at + 1;
    else runs.push({ placement: block.placement, from: at, to: at + 1 });
  });
  const every = Math.ceil(runs.length / 12);
  const kept = runs.filter((_, at) => at % every === 0);
  return {
    tickvals: kept.map((run) => (run.from + run.to) / 2), ticktext: kept.map((run) => String(run.placement)),
    title: { text: "placement, in time order", font: { size: 12 } }, ticks: "",
  };
}

function borders(one) {
  return one.blocks.slice(1).map((block, at) => {
    const strong = block.placement !== one.blocks[at].placement;
    return { type: "line", layer: "below", x0: at + 1, x1: at + 1, yref: "paper", y0: 0, y1: 1,
      line: { color: colour(strong ? "quiet" : "line"), width: 1 } };
  });
}

function pairTraces(one) {
  const [low, high] = one.axis;
  const points = one.blocks.flatMap((block, at) => along(block, at).map((x, pair) => ({ x, y: block.pairs[pair], text: named(block, at) })))
    .filter((point) => point.y !== null);
  const edge = 0.015 * (high - low);
  const held = (y) => (y > high ? high - edge : y < low ? low + edge : y);
  const medians = one.blocks.flatMap((block, at) => [[at + 0.06, block], [at + 0.94, block], [null, block]]);
  return [
    { type: "scatter", mode: "markers", name: "pair", x: points.map((p) => p.x), y: points.map((p) => held(p.y)),
      text: points.map((p) => `${digits(p.y)}<br>${p.text}`), hoverinfo: "text", cliponaxis: false,
      marker: { color: colour("pair"), size: 4.5, opacity: 0.85, symbol: points.map((p) => (p.y < low ? "triangle-down" : p.y > high ? "triangle-up" : "circle")) } },
    { type: "scatter", mode: "lines", name: "block median", x: medians.map(([x]) => x), y: medians.map(([x, block]) => (x === null ? null : block.speedup)),
      text: medians.map(([, block]) => `${digits(block.speedup)}, median of ${named(block, one.blocks.indexOf(block))}`), hoverinfo: "text",
      line: { color: colour("median"), width: 2.5 } },
  ];
}

function clockTraces(one, narrow) {
  const traces = ["baseline", "candidate"].map((side) => {
    const points = one.blocks.flatMap((block, at) => along(block, at).map((x, pair) => [x, block[`${side}_mhz`][pair] ?? null]))
      .filter(([, mhz]) => mhz !== null);
    return { type: "scatter", mode: "markers", name: narrow ? `clock, ${side}` : `device clock, ${side}`, yaxis: "y2", x: points.map(([x]) => x), y: points.map(([, mhz]) => mhz),
      hovertemplate: `%{y} MHz behind the ${side}<extra></extra>`, marker: { color: colour(side), size: 4, opacity: 0.8, symbol: side === "baseline" ? "circle" : "diamond" } };
  });
  const read = one.blocks.flatMap((block, at) => (block.nvml_mhz ? [[at + 0.02, block.nvml_mhz[0]], [at + 0.98, block.nvml_mhz[1]], [null, null]] : []));
  traces.push({ type: "scatter", mode: "lines", name: narrow ? "clock, NVML" : "NVML clock, before and after", yaxis: "y2", x: read.map(([x]) => x), y: read.map(([, mhz]) => mhz),
    hovertemplate: "%{y} MHz by NVML<extra></extra>", line: { color: colour("nvml"), width: 1.5, dash: "dot" } });
  return traces.filter((trace) => trace.x.length);
}

function eventTrace(one, kinds, width) {
  const breadth = Math.max(2, Math.min(8, (0.5 * width) / one.blocks.length)); // so that neighbours stay apart
  const most = new Map();
  for (const event of one.blocks.flatMap((block) => block.happenings)) most.set(event.kind, Math.max(most.get(event.kind) ?? 0, event.amount ?? 0));
  const points = one.blocks.flatMap((block, at) => block.happenings.map((event) => ({ at, event, block })));
  return { type: "scatter", mode: "markers", name: width < NARROW ? "event" : "event, taller for more", yaxis: "y3", x: points.map((p) => p.at + 0.5), y: points.map((p) => kinds.indexOf(p.event.kind)),
    text: points.map((p) => `${p.event.text}<br>${named(p.block, p.at)}`), hoverinfo: "text", cliponaxis: false,
    marker: { color: colour("amber"), opacity: 0.85, symbol: "line-ns-open", line: { width: breadth, color: colour("amber") }, size: points.map((p) => (p.event.amount === null ? 9 : 3 + 10 * Math.sqrt(p.event.amount / most.get(p.event.kind)))) } };
}

function groupPlot(one, figure, width) {
  const rows = one.groups.map((group, at) => ({ ...group, y: one.groups.length - 1 - at }));
  const dots = rows.flatMap((row) => row.blocks.map((at) => ({ x: one.blocks[at].speedup, y: row.y, text: `${digits(one.blocks[at].speedup)}<br>${named(one.blocks[at], at)}` })));
  const data = [
    { type: "scatter", mode: "markers", x: dots.map((d) => d.x), y: dots.map((d) => d.y), text: dots.map((d) => d.text), hoverinfo: "text",
      marker: { color: colour("pair"), size: 7, opacity: 0.75 } },
    { type: "scatter", mode: "markers", x: rows.map((row) => row.mean), y: rows.map((row) => row.y), text: rows.map((row) => `${row.label}: mean ${digits(row.mean)}`), hoverinfo: "text",
      marker: { symbol: "line-ns-open", size: 14, line: { width: 3, color: colour("median") }, color: colour("median") } },
  ];
  const layout = {
    height: 22 * rows.length + 70,
    xaxis: { range: one.blocks_axis, title: { text: "speedup", font: { size: 12 } }, tickformat: ".4~f", nticks: width < NARROW ? 5 : 9 },
    yaxis: { range: [-0.7, rows.length - 0.3], tickvals: rows.map((row) => row.y), ticktext: rows.map((row) => row.label), showgrid: true },
    shapes: bands(one, figure, (from, to) => ({ yref: "paper", y0: 0, y1: 1, x0: from, x1: to })),
  };
  return { data, layout: styled(layout, width) };
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((draw) => draw()));
