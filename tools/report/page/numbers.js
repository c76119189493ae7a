// Numbers in readable form. null is not measured and shows as a dash.
const missing = "–";
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

// Three significant digits, without an exponent if that is readable.
function digits(value, count = 3) {
  if (!isNumber(value)) return missing;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-2) return value.toExponential(count - 1).replace("e+", "e").replace("-", "−").replace("e-", "e−");
  const decimals = Math.max(0, count - 1 - Math.floor(Math.log10(size)));
  return value.toFixed(Math.min(decimals, 6)).replace("-", "−");
}

const timeUnits = [{ name: "s", scale: 1 }, { name: "ms", scale: 1e3 }, { name: "µs", scale: 1e6 },
                   { name: "ns", scale: 1e9 }];
function timeUnit(seconds) {
  const size = Math.abs(seconds);
  return timeUnits.find((unit) => size * unit.scale >= 1) || timeUnits.at(size > 0 ? -1 : 2);
}
function time(seconds, unit = isNumber(seconds) ? timeUnit(seconds) : timeUnits[1]) {
  return isNumber(seconds) ? `${digits(seconds * unit.scale)} ${unit.name}` : missing;
}
// The time of a site: null if its kernel belongs to another site.
const timeOfSite = (seconds) => (seconds === 0 ? missing : time(seconds));
function timeInterval(of, unit = isNumber(of.value) ? timeUnit(of.value) : timeUnits[1]) {
  const limit = (value) => (isNumber(value) ? digits(value * unit.scale) : missing);
  return isNumber(of.value) ? `${limit(of.low)} to ${limit(of.high)} ${unit.name}` : "";
}

const byteUnits = ["bytes", "kB", "MB", "GB", "TB"];
function bytes(count) {
  if (!isNumber(count)) return missing;
  let unit = 0;
  while (Math.abs(count) >= 1000 && unit + 1 < byteUnits.length) {
    count /= 1000;
    ++unit;
  }
  return count === 1 && unit === 0 ? "1 byte" : `${unit === 0 ? count : digits(count)} ${byteUnits[unit]}`;
}

function percent(share, decimals = 2) {
  return isNumber(share) ? `${(share * 100).toFixed(decimals).replace("-", "−")} %` : missing;
}
function percentInterval(of, decimals = 2) {
  if (!isNumber(of.value) || !isNumber(of.low) || !isNumber(of.high)) return "";
  return `${(of.low * 100).toFixed(decimals)} to ${(of.high * 100).toFixed(decimals)} %`;
}
// A share as a percentage; tiny shares are shown as "< ...".
function smallPercent(share) {
  if (!isNumber(share)) return missing;
  if (share === 0) return "0 %";
  return share < 1e-4 ? "< 0.01 %" : percent(share);
}
function change(ratio) {
  if (!isNumber(ratio)) return missing;
  const rounded = (ratio * 100).toFixed(1);
  return `${ratio > 0 ? "+" : ""}${rounded.replace("-", "−")} %`;
}
function signed(value, decimals, unit) {
  if (!isNumber(value)) return missing;
  return `${value > 0 ? "+" : ""}${value.toFixed(decimals).replace("-", "−")}${unit}`;
}
function decibel(value) {
  if (value === Infinity) return "exact";
  return isNumber(value) ? `${value.toFixed(1).replace("-", "−")} dB` : missing;
}
const count = (value) => (isNumber(value) ? value.toLocaleString("en").replace(/,/g, "\u202f") : missing);
