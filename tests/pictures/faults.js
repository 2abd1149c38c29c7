// What is wrong with the picture that is on the page: texts that leave it, that lie on each other, that are hard to read.
() => {
  const root = document.querySelector('.js-plotly-plot'), frame = root.getBoundingClientRect();
  const shown = [...root.querySelectorAll('svg text')].filter((text) => {
    const look = getComputedStyle(text), box = text.getBoundingClientRect();
    return text.textContent.trim() && box.width > 0 && look.visibility !== 'hidden' && +look.opacity > 0.05
      && !text.closest('.hoverlayer') && !text.closest('[style*="opacity: 0;"]') && !text.closest('.modebar');
  });
  // a title's lines are boxes of their own: the widest is not as high as all of them
  const boxes = shown.flatMap((text) => {
    const lines = [...text.querySelectorAll(':scope > tspan.line')];
    return (lines.length ? lines : [text]).filter((line) => line.textContent.trim()).map((line) => ({
      of: text, said: line.textContent.trim().slice(0, 60), box: line.getBoundingClientRect(),
    }));
  });
  const found = [];
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
  const numbers = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0]).slice(0, 3).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const ground = getComputedStyle(root.querySelector('.main-svg')).backgroundColor;
  for (const text of shown) {
    if (text.closest('.heatmaplayer')) continue;  // on a cell of its own colour
    const spans = [...text.querySelectorAll('tspan')].filter((span) => !span.querySelector('tspan'));
    for (const part of spans.length ? spans : [text]) {
      const ratio = contrast(getComputedStyle(part).fill, ground);
      if (part.textContent.trim() && ratio < 4.5)
        found.push(`hard to read (${ratio.toFixed(1)}): ${part.textContent.trim().slice(0, 60)}`);
    }
  }
  return [...new Set(found)];
}
