// Small line icons, drawn for this console on a 20×20 grid.
import type { JSX } from 'preact';

const paths = {
  overview: 'M3 11.5 10 5l7 6.5M5 10v6.5h10V10',
  apps: 'M3.5 3.5h5v5h-5zM11.5 3.5h5v5h-5zM3.5 11.5h5v5h-5zM11.5 11.5h5v5h-5z',
  users: 'M7.5 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM2 16.5c.5-3 2.6-4.5 5.5-4.5s5 1.5 5.5 4.5M13 4a3 3 0 0 1 0 5.2M15 12.2c1.8.7 2.8 2.2 3 4.3',
  plug: 'M7 3v4M13 3v4M5 7h10v3a5 5 0 0 1-10 0zM10 15v3',
  chart: 'M3 3v14h14M6.5 13l3-4 3 2 4-5.5',
  gateway: 'M3 5h14M3 10h14M3 15h14M7 3v4M13 8v4M9 13v4',
  health: 'M2.5 10h3.5l2-5 3.5 10 2.5-5h3.5',
  audit: 'M5 2.5h7l3.5 3.5v11.5h-10.5zM12 2.5v3.5h3.5M7.5 10.5h5M7.5 13.5h5',
  account: 'M10 10a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM3.5 17c.7-3.2 3.2-4.8 6.5-4.8s5.8 1.6 6.5 4.8',
  sun:
    'M10 13.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2' +
    'M4 4l1.4 1.4M14.6 14.6 16 16M16 4l-1.4 1.4M5.4 14.6 4 16',
  moon: 'M16.5 12A7 7 0 0 1 8 3.5a7 7 0 1 0 8.5 8.5Z',
  auto: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 3v14',
  plus: 'M10 4v12M4 10h12',
  copy: 'M7 7h9.5v9.5H7zM4 13H3.5V3.5H13V4',
  check: 'M4 10.5 8 14.5 16 5.5',
  eye: 'M1.5 10s3-5.5 8.5-5.5 8.5 5.5 8.5 5.5-3 5.5-8.5 5.5S1.5 10 1.5 10ZM10 12.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z',
  hide:
    'M3 3l14 14M8 4.8c.6-.2 1.3-.3 2-.3 5.5 0 8.5 5.5 8.5 5.5a14 14 0 0 1-2.6 3.2' +
    'M5 6A13.5 13.5 0 0 0 1.5 10s3 5.5 8.5 5.5c1.5 0 2.8-.4 4-1',
  renew: 'M16.5 8A7 7 0 0 0 4 6.5M3.5 3v4h4M3.5 12A7 7 0 0 0 16 13.5M16.5 17v-4h-4',
  trash: 'M3.5 5.5h13M8 5.5V3h4v2.5M5 5.5l.8 11.5h8.4l.8-11.5M8.5 8.5v5.5M11.5 8.5v5.5',
  pause: 'M6.5 4v12M13.5 4v12',
  play: 'M6 3.5 16 10 6 16.5z',
  prev: 'M13 4 7 10l6 6',
  next: 'M7 4l6 6-6 6',
  search: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12ZM13.5 13.5 17.5 17.5',
  out: 'M8 3H3.5v14H8M12.5 6l4 4-4 4M16 10H7.5',
  send: 'M17.5 2.5 9 11M17.5 2.5 12 17.5l-3-6.5-6.5-3z',
  close: 'M5 5l10 10M15 5 5 15',
  warn: 'M10 3 18 16.5H2zM10 8v4M10 14.2v.3',
  live:
    'M10 11.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM6.5 13.5a5 5 0 0 1 0-7M13.5 6.5a5 5 0 0 1 0 7' +
    'M4 16a8.5 8.5 0 0 1 0-12M16 4a8.5 8.5 0 0 1 0 12',
  key: 'M7 13.5a4 4 0 1 1 3.6-5.8H18v3h-2v2.5h-3v-2.5h-2.4A4 4 0 0 1 7 13.5ZM6.5 9.5h.1',
  menu: 'M3 5.5h14M3 10h14M3 14.5h14',
  code: 'M7 5.5 2.5 10 7 14.5M13 5.5 17.5 10 13 14.5',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  );
}

export function Logo({ size = 26 }: { size?: number }): JSX.Element {
  return (
    <svg class="logo" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" class="logo-ground" />
      <path d="M7 11c4-4 6 3 10 0s5-2 8-1M7 17c4-4 6 3 10 0M7 23c3-3 4 0 6-1" class="logo-waves" />
    </svg>
  );
}
