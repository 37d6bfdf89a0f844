// Figures over time, drawn by uPlot on a canvas, with the same figures in words for those who cannot see it.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { theme } from './theming';

export type Tone = 'accent' | 'muted' | 'ok' | 'warn' | 'bad';
export interface Series {
  label: string;
  values: (number | null)[];
  tone: Tone;
  fill?: boolean;
}

interface PlotProps {
  label: string;
  /** Seconds. */
  times: number[];
  series: Series[];
  format: (n: number) => string;
  height?: number;
  /** Lines suit what is measured; bars suit sums over hours, one series before the other or on top of it. */
  as?: 'lines' | 'bars' | 'stack';
  /** The figure of the whole time, shown while nobody points at one moment; the latest without it. */
  whole?: (string | undefined)[];
  /** How many seconds there are to see at least. */
  span?: number;
  /** How high the axis reaches at least, for what is counted in whole things. */
  least?: number;
}

/** Steps of an axis that counts: what is counted does not come in halves. */
const wholeSteps = Array.from({ length: 15 }, (_, n) => [1, 2, 5].map(step => step * 10 ** n)).flat();

const color = (name: string): string =>
  getComputedStyle(document.documentElement)
    .getPropertyValue('--' + name)
    .trim();

const hours = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const seconds = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** What stands below the axis of time: the hour, and the day where it begins. */
function moments(ticks: number[], every: number): string[] {
  let day = '';
  return ticks.map(t => {
    const text = (every < 60 ? seconds : hours).format(t * 1000),
      today = days.format(t * 1000);
    if (today === day || every < 3600) return text;
    day = today;
    return `${text}\n${today}`;
  });
}

/** Each series on top of those before it. */
function stacked(series: Series[]): (number | null)[][] {
  const sums: (number | null)[][] = [];
  for (const s of series) {
    const below = sums[sums.length - 1];
    sums.push(s.values.map((v, i) => (v === null && (below?.[i] ?? null) === null ? null : (v ?? 0) + (below?.[i] ?? 0))));
  }
  return sums;
}

/** As uPlot draws them: of a stack, the highest first, so that the others lie before it. */
function drawn(times: number[], series: Series[], isStack: boolean): uPlot.AlignedData {
  return [times, ...(isStack ? stacked(series).reverse() : series.map(s => s.values))];
}

export function Plot({ label, times, series, format, height = 160, as = 'lines', whole, span = 0, least = 0 }: PlotProps) {
  const box = useRef<HTMLDivElement>(null),
    plot = useRef<uPlot | undefined>(undefined);
  const [at, setAt] = useState<number | null>(null); // the moment that is pointed at
  const isStack = as === 'stack',
    scheme = theme.value;
  const shape = series.map(s => s.label + s.tone).join() + scheme + as;
  const alone = as === 'lines' && times.length < 40; // few moments are points, lest one of them be invisible
  useEffect(() => {
    const el = box.current!;
    const axis = {
      stroke: color('muted'),
      font: '11px Inter, sans-serif',
      grid: { stroke: color('line'), width: 1 },
      ticks: { show: false },
    };
    const line = (s: Series): uPlot.Series =>
      ({
        label: s.label,
        stroke: color(s.tone),
        width: as === 'lines' ? 1.5 : 0,
        points: alone ? { show: true, size: 5, fill: color(s.tone) } : { show: false },
        ...(as === 'lines'
          ? { fill: s.fill ? color(s.tone) + '22' : undefined }
          : { paths: uPlot.paths.bars!({ size: [0.7, 40], radius: isStack ? 0 : 0.15 }), fill: color(s.tone) }),
      }) as uPlot.Series;
    plot.current = new uPlot(
      {
        width: el.clientWidth || 300,
        height,
        cursor: { y: false, points: { size: 6, show: as === 'lines' }, drag: { x: false, y: false } },
        legend: { show: false },
        padding: [8, 20, 0, 0],
        scales: {
          x: { range: (_u, min, max) => [Math.min(min, max - span), max] },
          y: { range: (_u, _min, max) => [0, Math.max(least, max > 0 ? max * 1.1 : 1)] },
        },
        axes: [
          { ...axis, grid: { show: false }, gap: 9, space: 70, values: (_u, ticks, _a, _s, every) => moments(ticks, every) },
          {
            ...axis,
            size: 62,
            space: 26,
            ...(as !== 'lines' && least === 0 ? { incrs: wholeSteps } : {}),
            values: (_u, ticks) => ticks.map(t => format(t)),
          },
        ],
        series: [{}, ...(isStack ? [...series].reverse() : series).map(line)],
        hooks: { setCursor: [u => setAt(u.cursor.idx ?? null)] },
      },
      drawn(times, series, isStack),
      el,
    );
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: el.clientWidth, height }));
    watch.observe(el);
    return () => {
      watch.disconnect();
      plot.current?.destroy();
    };
  }, [shape, height, alone]);
  useEffect(() => {
    plot.current?.setData(drawn(times, series, isStack));
  }, [times, series]);
  const pointed = at !== null && at < times.length ? at : null;
  const shown = (s: Series, i: number): string => {
    if (pointed === null && whole?.[i] !== undefined) return whole[i];
    const v = s.values[pointed ?? s.values.findLastIndex(v => v !== null)];
    return v === null || v === undefined ? '–' : format(v);
  };
  return (
    <figure class="plot">
      <figcaption>
        {label}
        <span class="plot-at" aria-hidden="true">
          {pointed === null
            ? ''
            : `${days.format(times[pointed]! * 1000)}, ${(as === 'lines' ? seconds : hours).format(times[pointed]! * 1000)}`}
        </span>
      </figcaption>
      <div ref={box} class="plot-box" style={{ minHeight: height + 'px' }} aria-hidden="true" />
      <ul class="legend">
        {series.map((s, i) => (
          <li key={s.label}>
            <i class={'mark ' + s.tone} aria-hidden="true" />
            {s.label} <b>{shown(s, i)}</b>
          </li>
        ))}
      </ul>
    </figure>
  );
}
