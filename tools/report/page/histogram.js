// The values of a site before and after a rule: bars are calibration values, the line is the stored distribution. Rules
// list their numbers (levels); each level takes the values nearest to it.
const mostBars = 96; // visible together; finer bins are merged

// The number of values below x, assuming that they are spread evenly in their bin.
function belowIn(statistics) {
  const { histogram, low } = statistics, width = (statistics.high - low || 1) / histogram.length;
  const sums = [0];
  for (const bin of histogram) sums.push(sums.at(-1) + bin);
  return (x) => {
    const place = Math.min(Math.max((x - low) / width, 0), histogram.length), bin = Math.min(Math.floor(place), histogram.length - 1);
    return sums[bin] + (place - bin) * histogram[bin];
  };
}

// The range of each level; values beyond the first and the last one are clipped to them.
function cellsOf(levels, below, total) {
  const between = (index) => (levels[index] + levels[index + 1]) / 2;
  return levels.map((level, index) => {
    const isFirst = index === 0, isLast = index + 1 === levels.length;
    const low = isFirst ? (isLast ? level - 0.5 : 2 * level - between(0)) : between(index - 1);
    const high = isLast ? (isFirst ? level + 0.5 : 2 * level - between(index - 1)) : between(index);
    return { level, low, high, amount: (isLast ? total : below(high)) - (isFirst ? 0 : below(low)) };
  });
}

// Adjacent levels are combined until they are as wide as a bar.
function atLeastAsWide(cells, width) {
  const out = [];
  for (const cell of cells) {
    const last = out.at(-1);
    if (last && last.high - last.low < width * 0.999) out[out.length - 1] = { low: last.low, high: cell.high, amount: last.amount + cell.amount };
    else out.push(cell);
  }
  return out;
}

function barsWithin(statistics, from, to) {
  const { histogram, low } = statistics, width = (statistics.high - low || 1) / histogram.length;
  const bars = Math.min(to - from, mostBars), edge = (index) => from + Math.round(((to - from) * index) / bars);
  // Bars of nearly equal width, so that the last one is not too narrow.
  return Array.from({ length: bars }, (_, index) => ({ low: low + edge(index) * width, high: low + edge(index + 1) * width,
    amount: histogram.slice(edge(index), edge(index + 1)).reduce((sum, each) => sum + each, 0) }));
}

// The bins from..to of a site under a rule.
function distribution(site, rule, from, to, label) {
  const { statistics } = site, bars = barsWithin(statistics, from, to);
  const width = 560, height = 150, bottom = 118, left = 8, right = width - 8;
  const low = bars[0].low, high = bars.at(-1).high, barWidth = bars[0].high - low;
  const x = (value) => left + ((Math.min(Math.max(value, low), high) - low) / (high - low)) * (right - left);
  const isSeen = (value) => value >= low && value <= high;
  const below = belowIn(statistics), total = statistics.histogram.reduce((sum, bin) => sum + bin, 0);
  const cells = cellsOf(rule.levels, below, total).filter((cell) => cell.high > low && cell.low < high);
  const marks = cells.length <= mostBars / 2 ? cells.filter((cell) => isSeen(cell.level)) : [];
  const stored = atLeastAsWide(cells, barWidth);
  // The number of values that a whole bar of this density would have.
  const amountOf = (cell) => (cell.amount * barWidth) / (cell.high - cell.low);
  const most = Math.max(...bars.map(amountOf), ...stored.map(amountOf), 1);
  // Square roots keep the tails visible, which matter for clipping.
  const y = (cell) => bottom - Math.sqrt(amountOf(cell) / most) * (bottom - 24);
  const isClipped = (value) => (isNumber(rule.clip_low) && value < rule.clip_low) || (isNumber(rule.clip_high) && value > rule.clip_high);
  const limits = [rule.clip_low, rule.clip_high].filter((value) => isNumber(value) && isSeen(value));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    bars.map((bar) => bar.amount > 0 && svg("rect", { class: isClipped((bar.low + bar.high) / 2) ? "clipped" : "bar", x: x(bar.low),
      width: Math.max(x(bar.high) - x(bar.low) - 0.5, 0.5), y: y(bar), height: bottom - y(bar) })),
    stored.length > 0 && svg("path", { class: "stored", d: `M${x(stored[0].low)} ${bottom}${stored.map((cell) =>
      `V${y(cell)}H${x(cell.high)}`).join("")}V${bottom}` }),
    svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
    marks.length > 0 && svg("path", { class: "levels", d: marks.map((cell) => `M${x(cell.level)} ${bottom + 5}V${y(cell)}`).join("") }),
    limits.map((value) => svg("line", { class: "clip", x1: x(value), x2: x(value), y1: 6, y2: bottom + 5 })),
    axisTicks(low, high, left, right, bottom));
}

function axisTicks(low, high, left, right, bottom) {
  const step = roundStep(high - low || 1, 7), out = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) {
    const x = left + ((i * step - low) / (high - low || 1)) * (right - left);
    if (x < left + 12 || x > right - 12) continue;
    out.push(svg("text", { x, y: bottom + 18, "text-anchor": "middle" }, digits(i * step, 2)));
  }
  return out;
}

// As many bins as there are bars, around the median, so that each bin and each level is visible.
function aroundTheMedian(histogram) {
  const size = Math.min(mostBars, histogram.length);
  const half = histogram.reduce((sum, bin) => sum + bin, 0) / 2;
  let median = 0;
  for (let sum = histogram[0]; sum < half && median + 1 < histogram.length; sum += histogram[median]) ++median;
  const from = Math.min(Math.max(median - Math.floor(size / 2), 0), histogram.length - size);
  return [from, from + size];
}

function stepText(levels) {
  const steps = levels.slice(1).map((level, index) => level - levels[index]);
  const least = Math.min(...steps), most = Math.max(...steps);
  return digits(least) === digits(most) || most - least < 1e-3 * most ? `${digits(most)} apart` : `${digits(least)} to ${digits(most)} apart`;
}

function histogram(site) {
  const { statistics } = site;
  if (!statistics.histogram.length || !isNumber(statistics.low) || !isNumber(statistics.high)) return null;
  const rule = candidateOf(site, whatIfRule(site)), { levels } = rule, name = ruleName(rule.rule);
  const text = `${count(statistics.count)} values from ${digits(statistics.low)} to ${digits(statistics.high)}, mean ${digits(statistics.mean)}` +
    (isNumber(rule.clip_low) && isNumber(rule.clip_high) ? `; ${name} holds ${digits(rule.clip_low)} to ${digits(rule.clip_high)}, ${smallPercent(rule.clipped_share)} clipped` : "");
  const steps = levels.length > 1 ? ` ${name} has ${count(levels.length)} numbers here, ${stepText(levels)}.` : "";
  const showsDetail = levels.length > mostBars / 2;
  const [from, to] = aroundTheMedian(statistics.histogram);
  return [
    html("figure", { class: "histogram" }, distribution(site, rule, 0, statistics.histogram.length, text + steps),
      html("figcaption", { class: "note" }, text, ".", steps, " Heights are square roots of counts.",
           levels.length > 0 && " The line is the stored distribution: clipped values are at its ends.")),
    showsDetail && html("figure", { class: "histogram detail" },
      distribution(site, rule, from, to, `The values around the median, before and after ${name}`),
      html("figcaption", { class: "note" }, `The values around the median, closely: every stroke across the bars is a number that ${name} has, among the values that become it. Where there are no strokes, the numbers lie as close together as the bars.`)),
  ];
}
