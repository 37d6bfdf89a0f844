// Lines over time, drawn by uPlot on a canvas, with a table of the same figures for those who cannot see it.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { theme } from './theming';

export interface Series { label: string; values: (number | null)[]; tone: 'accent' | 'muted' | 'ok' | 'warn' | 'bad'; fill?: boolean }

interface PlotProps {
  label: string;
  /** Seconds. */
  times: number[];
  series: Series[];
  format: (n: number) => string;
  height?: number;
  /** Bars suit sums over hours; lines suit what is measured. */
  bars?: boolean;
}

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

export function Plot({ label, times, series, format, height = 160, bars }: PlotProps) {
  const box = useRef<HTMLDivElement>(null), plot = useRef<uPlot | undefined>(undefined);
  const scheme = theme.value;
  const shape = series.map(s => s.label + s.tone).join() + scheme + bars;
  useEffect(() => {
    const el = box.current!;
    const axis = { stroke: color('muted'), font: '11px Inter, sans-serif', grid: { stroke: color('line'), width: 1 }, ticks: { show: false } };
    plot.current = new uPlot({
      width: el.clientWidth || 300, height,
      cursor: { y: false, points: { size: 6 } },
      legend: { show: true, live: true },
      padding: [8, 8, 0, 0],
      scales: { y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [{ ...axis, grid: { show: false }, space: 70 },
        { ...axis, size: 62, space: 34, values: (_u, ticks) => ticks.map(t => format(t)) }],
      series: [{ value: (_u, t) => t === null ? '' : new Date(t * 1000).toLocaleTimeString('en-GB') },
        ...series.map(s => ({
          label: s.label, stroke: color(s.tone), width: 1.5, fill: s.fill ? color(s.tone) + '22' : undefined, points: { show: false },
          value: (_u: uPlot, v: number | null) => v === null || v === undefined ? '–' : format(v),
          ...(bars ? { paths: uPlot.paths.bars!({ size: [0.6, 40] }), fill: color(s.tone) + '66' } : {}),
        }) as uPlot.Series)],
    }, [times, ...series.map(s => s.values)], el);
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: el.clientWidth, height }));
    watch.observe(el);
    return () => { watch.disconnect(); plot.current?.destroy(); };
  }, [shape, height]);
  useEffect(() => { plot.current?.setData([times, ...series.map(s => s.values)]); });
  const last = times.length - 1;
  return (
    <figure class="plot">
      <figcaption>{label}</figcaption>
      <div ref={box} class="plot-box" style={{ minHeight: height + 'px' }} aria-hidden="true" />
      <p class="offscreen">{series.map(s => `${s.label}: ${last >= 0 && s.values[last] != null ? format(s.values[last]!) : 'no value'}`).join('; ')}</p>
    </figure>
  );
}
