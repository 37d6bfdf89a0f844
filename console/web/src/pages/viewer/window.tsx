// Which rows of a long list are in view.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

const tallest = 15_000_000; // pixels; browsers cut off what is taller

export function useWindow(total: number, size: number) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const look = (): void => {
    const el = box.current!;
    setView({ top: el.scrollTop, height: el.clientHeight });
  };
  useLayoutEffect(() => {
    const el = box.current!;
    const watch = new ResizeObserver(look);
    watch.observe(el);
    el.addEventListener('scroll', look, { passive: true });
    return () => {
      watch.disconnect();
      el.removeEventListener('scroll', look);
    };
  }, []);
  const space = Math.min(total * size, tallest);
  const scrolled = Math.min(view.top, Math.max(0, space - view.height)); // what has become shorter is not scrolled back yet
  // A list that is too long for a browser goes by faster than it is scrolled.
  const scale = space < total * size ? (total * size - view.height) / (space - view.height) : 1;
  const top = scrolled * scale,
    from = Math.max(0, Math.floor(top / size) - 4);
  /** Scrolls there, and shows it at once: what the browser says about scrolling comes a frame later. */
  const scroll = (to: number): void => {
    box.current!.scrollTop = Math.max(0, to) / scale;
    look();
  };
  return {
    box,
    space,
    top,
    scroll,
    from,
    to: Math.min(total, Math.ceil((top + view.height) / size) + 4),
    shift: from * size - top + scrolled,
    inView: Math.floor(view.height / size),
    first: Math.ceil(top / size),
    /** Whether a row and some around it are in view. */
    sees: (row: number, below = 1) => row * size >= top && row * size <= top + view.height - below * size,
  };
}
