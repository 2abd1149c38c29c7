// What is wrong with the picture that is on the page: texts that leave it, that lie on each other or on a line, and what
// is hard to see.
() => {
  const root = document.querySelector('.js-plotly-plot'), frame = root.getBoundingClientRect();
  const found = [];

  // ---- texts

  const isSeen = (element) => {
    const look = getComputedStyle(element), box = element.getBoundingClientRect();
    return box.width > 0 && look.visibility !== 'hidden' && +look.opacity > 0.05
      && !element.closest('.hoverlayer, .modebar, [style*="opacity: 0;"], [style*="visibility: hidden"]');
  };
  const shown = [...root.querySelectorAll('svg text')].filter((text) => text.textContent.trim() && isSeen(text));
  // a title's lines are boxes of their own: the widest is not as high as all of them
  const boxOf = (line) => { // letters that keep a text off something are nothing to see
    const { left, right, top, bottom } = line.getBoundingClientRect(), air = line.textContent.length - line.textContent.trimStart().length;
    return { left: left + (air ? line.getSubStringLength(0, air) : 0), right, top, bottom };
  };
  const boxes = shown.flatMap((text) => {
    const lines = [...text.querySelectorAll(':scope > tspan.line')];
    return (lines.length ? lines : [text]).filter((line) => line.textContent.trim()).map((line) => ({
      of: text, said: line.textContent.trim().slice(0, 60), box: boxOf(line),
    }));
  });
  for (const { said, box } of boxes) {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      found.push(`leaves the picture: ${said}`);
  }
  for (const [place, one] of boxes.entries()) {
    for (const other of boxes.slice(place + 1)) {
      if (one.of === other.of) continue;
      const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      if (across > 1 && down > 2) found.push(`lie on each other: ${one.said} | ${other.said}`);
    }
  }

  for (const button of root.querySelectorAll('.updatemenu-button rect')) {
    const over = button.getBoundingClientRect();
    for (const { of, said, box } of boxes) {
      if (button.parentElement.contains(of)) continue;
      const across = Math.min(over.right, box.right) - Math.max(over.left, box.left);
      if (across > 1 && Math.min(over.bottom, box.bottom) - Math.max(over.top, box.top) > 2) found.push(`below a button: ${said}`);
    }
  }

  // ---- texts on lines

  const corners = (path) => { // of a path of straight pieces, on the screen
    const matrix = path.getScreenCTM(), pieces = [];
    let x = 0, y = 0;
    for (const [, letter, rest] of (path.getAttribute('d') ?? '').matchAll(/([MLHVZ])([^MLHVZ]*)/g)) {
      const numbers = (rest.match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
      const [fromX, fromY] = [x, y];
      if (letter === 'H') [x] = numbers;
      else if (letter === 'V') [y] = numbers;
      else if (letter !== 'Z') [x, y] = numbers;
      if (letter !== 'M' && letter !== 'Z') pieces.push([[fromX, fromY], [x, y]]);
    }
    const seen = ([a, b]) => [matrix.a * a + matrix.c * b + matrix.e, matrix.b * a + matrix.d * b + matrix.f];
    return pieces.map((piece) => piece.map(seen));
  };
  const crosses = ([[ax, ay], [bx, by]], box) => { // Liang and Barsky's clipping
    const steps = [[ax - bx, ax - box.left], [bx - ax, box.right - ax], [ay - by, ay - box.top], [by - ay, box.bottom - ay]];
    let [low, high] = [0, 1];
    for (const [p, q] of steps) {
      if (p === 0 && q < 0) return false;
      if (p < 0) low = Math.max(low, q / p);
      if (p > 0) high = Math.min(high, q / p);
    }
    return low < high;
  };
  const isLine = (path) => {
    const look = getComputedStyle(path);
    const isEdge = path.parentElement.querySelector('.js-fill') ?? path.closest('.trace')?.querySelector('.fills path');
    return !isEdge && isSeen(path.parentElement) && (look.fill === 'none' || +look.fillOpacity === 0) && look.stroke !== 'none' && parseFloat(look.strokeWidth) >= 1;
  };
  const lines = [...root.querySelectorAll('.scatterlayer .js-line, .shapelayer path')].filter(isLine);
  const labels = boxes.filter(({ of }) => of.closest('.annotation, .textpoint'));
  for (const line of lines) {
    const pieces = corners(line);
    for (const { said, box } of labels) {
      const inner = { left: box.left + 2, right: box.right - 2, top: box.top + 3, bottom: box.bottom - 3 };
      if (pieces.some((piece) => crosses(piece, inner))) found.push(`on a line: ${said}`);
    }
  }

  // ---- texts on the edge of an area

  const isCovered = (of) => { // a ground of its own
    const ground = of.closest('.annotation')?.querySelector('rect.bg');
    return ground && +getComputedStyle(ground).fillOpacity > 0.9 && getComputedStyle(ground).fill !== 'none';
  };
  for (const area of root.querySelectorAll('.scatterlayer .js-fill')) {
    if (!isSeen(area) || +getComputedStyle(area).fillOpacity < 0.1) continue; // too pale to be in the way
    const pieces = corners(area);
    for (const { of, said, box } of labels) {
      const inner = { left: box.left + 2, right: box.right - 2, top: box.top + 3, bottom: box.bottom - 3 };
      if (!isCovered(of) && pieces.some((piece) => crosses(piece, inner))) found.push(`on the edge of an area: ${said}`);
    }
  }

  // ---- what says nothing, or something else

  const { xaxis, yaxis } = root._fullLayout;
  for (const [axis, name] of [[xaxis, 'x'], [yaxis, 'y']]) {
    if (!axis?.visible || axis.type === "category" || axis.tickmode === "array" && axis.tickvals.length === 1) continue;
    const ticks = root.querySelectorAll(`.${name}tick text`).length;
    if (ticks < 2) found.push(`an axis with ${ticks} ticks: ${name}`);
  }
  for (const menu of root._fullLayout.updatemenus ?? []) {
    const states = menu.buttons.filter(({ method }) => method !== 'animate').map(({ label }) => label[0]);
    if (states.length > 1 && states.filter((state) => state === '●').length !== 1) found.push('a toggle without a state');
  }
  const points = [...root.querySelectorAll('.scatterlayer .point')].filter(isSeen).map((point) => point.getBoundingClientRect());
  const across = points.map(({ left, right }) => (left + right) / 2);
  const wide = Math.max(...across) - Math.min(...across);
  if (new Set(across.map(Math.round)).size > 3 && wide < 0.02 * xaxis._length) found.push('all marks within 2 % of the width');
  const title = root.querySelector('.gtitle')?.querySelector('tspan.line')?.textContent ?? root.querySelector('.gtitle')?.textContent ?? '';
  const drops = root._fullData.filter(({ name, mode, x }) => /^dropped/.test(name ?? '') && /markers/.test(mode) && x?.length);
  const [, keys] = title.match(/^([\d,]+) keys? ·/) ?? [];
  if (keys && +keys.replaceAll(',', '') !== new Set(yaxis.tickvals).size) found.push(`another number of keys: ${title}`);
  if (/(^|\s)0 dropped/.test(title) && drops.length) found.push(`a drop, where the title has none: ${title}`);
  if (/was dropped$/.test(title) && !drops.length && !root.querySelector('.point[style*="fill"]')) found.push(`no drop: ${title}`);

  // ---- what is hard to see

  const parts = (colour) => {
    const [r = 0, g = 0, b = 0, alpha = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number);
    return { rgb: [r, g, b], alpha };
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = parts(getComputedStyle(root.querySelector('.main-svg')).backgroundColor).rgb;
  const contrast = (colour, opacity = 1) => {
    const { rgb, alpha } = parts(colour), share = alpha * opacity;
    const mixed = rgb.map((part, place) => share * part + (1 - share) * ground[place]);
    const [dark, bright] = [light(mixed), light(ground)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  for (const text of shown) {
    if (text.closest('.heatmaplayer')) continue; // on a cell of its own colour
    const spans = [...text.querySelectorAll('tspan')].filter((span) => !span.querySelector('tspan'));
    for (const part of spans.length ? spans : [text]) {
      const ratio = contrast(getComputedStyle(part).fill);
      if (part.textContent.trim() && ratio < 4.5)
        found.push(`hard to read (${ratio.toFixed(1)}): ${part.textContent.trim().slice(0, 60)}`);
    }
  }
  for (const line of lines) {
    const look = getComputedStyle(line), ratio = contrast(look.stroke, +look.strokeOpacity);
    if (ratio < 3) found.push(`a line that is hard to see (${ratio.toFixed(1)}): ${look.stroke}`);
  }
  for (const mark of root.querySelectorAll('.scatterlayer .point, .barlayer .point path')) {
    const look = getComputedStyle(mark);
    if (look.fill.startsWith('url')) continue; // a pattern of two colours
    if (+look.fillOpacity === 0 && +look.strokeOpacity === 0) continue;
    const sides = [[look.fill, +look.fillOpacity], [look.stroke, look.strokeWidth === '0px' ? 0 : +look.strokeOpacity]]
      .filter(([colour, opacity]) => colour !== 'none' && parts(colour).alpha * opacity > 0);
    if (!sides.length) continue;
    const ratio = Math.max(...sides.map(([colour, opacity]) => contrast(colour, opacity * +look.opacity)));
    if (ratio < 3) found.push(`a mark that is hard to see (${ratio.toFixed(1)}): ${look.fill}`);
  }
  return [...new Set(found)];
}
