// The board as an SVG file that needs nothing else.

const LEFT_OUT = ".hits, .edges, .over .may";

// svg: the board as it is drawn now; its colours are written out.
export function pictureOf(svg) {
  const colours = getComputedStyle(document.documentElement), copy = svg.cloneNode(true);
  for (const part of copy.querySelectorAll(LEFT_OUT)) part.remove();
  for (const text of copy.querySelectorAll("[paint-order]")) {
    // Few programs draw the halo below the letters by themselves.
    text.before(text.cloneNode(true));
    for (const name of ["stroke", "stroke-width", "paint-order"]) text.removeAttribute(name);
  }
  const [x, y, width, height] = copy.getAttribute("viewBox").split(" ");
  const ground = document.createElementNS(copy.namespaceURI, "rect");
  for (const [name, value] of Object.entries({ x, y, width, height, fill: "var(--page)" })) ground.setAttribute(name, value);
  copy.prepend(ground);
  for (const name of ["id", "role", "aria-label", "class"]) copy.removeAttribute(name);
  for (const [name, value] of Object.entries({ width, height, "font-family": "Helvetica, Arial, sans-serif" })) copy.setAttribute(name, value);
  const text = new XMLSerializer().serializeToString(copy);
  return text.replace(/var\((--[\w-]+)\)/g, (_, name) => colours.getPropertyValue(name).trim());
}
