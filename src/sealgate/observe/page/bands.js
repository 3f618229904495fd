// What uPlot does not draw by itself: shaded pauses behind the lines, and a mark for each 429.

/** Hooks for one key: `points` are the newest, `alias` the key; colours are asked for when drawing. */
export function bands(points, alias, colour) {
  return {
    drawClear: (plot) => pauses(points()).forEach((pause) => shade(plot, pause, colour("--pause"))),
    draw: (plot) => marks(points(), alias).forEach((at) => mark(plot, at, colour("--bad"))),
  };

  function pauses(all) {
    const found = [];
    let began = null;
    for (const point of all) {
      const isPaused = (point.keys[alias]?.[2] ?? 0) > 0;
      if (isPaused && began === null) began = point.t;
      if (!isPaused && began !== null) found.push([began, point.t]), (began = null);
    }
    if (began !== null) found.push([began, all.at(-1).t]);
    return found;
  }
}

const marks = (points, alias) =>
  points.flatMap((point) => point.limited.filter(([key]) => key === alias).map(([, at]) => at));

function shade({ ctx, bbox, valToPos }, [from, to], colour) {
  const left = Math.max(bbox.left, valToPos(from, "x", true));
  const width = Math.max(2, valToPos(to, "x", true) - left);
  ctx.save();
  ctx.fillStyle = colour;
  ctx.fillRect(left, bbox.top, width, bbox.height);
  ctx.restore();
}

function mark({ ctx, bbox, valToPos }, at, colour) {
  const x = valToPos(at, "x", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  const size = 5 * devicePixelRatio;
  ctx.save();
  ctx.fillStyle = ctx.strokeStyle = colour;
  ctx.globalAlpha = 0.9;
  ctx.beginPath();
  ctx.moveTo(x - size, bbox.top);
  ctx.lineTo(x + size, bbox.top);
  ctx.lineTo(x, bbox.top + 1.7 * size);
  ctx.fill();
  ctx.globalAlpha = 0.35;
  ctx.fillRect(x - 0.5, bbox.top, devicePixelRatio, bbox.height);
  ctx.restore();
}
