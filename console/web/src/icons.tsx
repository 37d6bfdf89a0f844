// Small line icons, drawn for this console on a 20×20 grid.
import type { JSX } from 'preact';

const paths = {
  overview: 'M3 11.5 10 5l7 6.5M5 10v6.5h10V10',
  apps: 'M3.5 3.5h5v5h-5zM11.5 3.5h5v5h-5zM3.5 11.5h5v5h-5zM11.5 11.5h5v5h-5z',
  users: 'M7.5 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM2 16.5c.5-3 2.6-4.5 5.5-4.5s5 1.500 5.500 4.500M13 4a3 3 0 0 1 0 5.200M15 12.200c1.800.700 2.800 2.200 3 4.300',
  plug: 'M7 3v4M13 3v4M5 7h10v3a5 5 0 0 1-10 0zM10 15v3',
  chart: 'M3 3v14h14M6.500 13l3-4 3 2 4-5.500',
  gateway: 'M3 5h14M3 10h14M3 15h14M7 3v4M13 8v4M9 13v4',
  health: 'M2.500 10h3.500l2-5 3.500 10 2.500-5h3.500',
  audit: 'M5 2.500h7l3.500 3.500v11.500h-10.500zM12 2.500v3.500h3.500M7.500 10.500h5M7.500 13.500h5',
  account: 'M10 10a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7ZM3.500 17c.700-3.200 3.200-4.800 6.500-4.800s5.800 1.600 6.500 4.800',
  sun: 'M10 13.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7ZM10 1.500v2M10 16.500v2M1.500 10h2M16.500 10h2M4 4l1.400 1.400M14.600 14.600 16 16M16 4l-1.400 1.400M5.400 14.600 4 16',
  moon: 'M16.500 12A7 7 0 0 1 8 3.500a7 7 0 1 0 8.500 8.500Z',
  auto: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 3v14',
  plus: 'M10 4v12M4 10h12',
  copy: 'M7 7h9.500v9.500H7zM4 13H3.500V3.500H13V4',
  check: 'M4 10.500 8 14.500 16 5.500',
  eye: 'M1.500 10s3-5.500 8.500-5.500 8.500 5.500 8.500 5.500-3 5.500-8.500 5.500S1.500 10 1.500 10ZM10 12.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5Z',
  hide: 'M3 3l14 14M8 4.800c.600-.200 1.300-.300 2-.300 5.500 0 8.500 5.500 8.500 5.500a14 14 0 0 1-2.600 3.200M5 6A13.500 13.500 0 0 0 1.500 10s3 5.500 8.500 5.500c1.500 0 2.800-.400 4-1',
  renew: 'M16.500 8A7 7 0 0 0 4 6.500M3.500 3v4h4M3.500 12A7 7 0 0 0 16 13.500M16.500 17v-4h-4',
  trash: 'M3.500 5.500h13M8 5.500V3h4v2.500M5 5.500l.800 11.500h8.400l.800-11.500M8.500 8.500v5.500M11.500 8.500v5.500',
  pause: 'M6.500 4v12M13.500 4v12',
  play: 'M6 3.500 16 10 6 16.500z',
  prev: 'M13 4 7 10l6 6',
  next: 'M7 4l6 6-6 6',
  search: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12ZM13.500 13.500 17.500 17.500',
  out: 'M8 3H3.500v14H8M12.500 6l4 4-4 4M16 10H7.500',
  send: 'M17.500 2.500 9 11M17.500 2.500 12 17.500l-3-6.500-6.500-3z',
  close: 'M5 5l10 10M15 5 5 15',
  warn: 'M10 3 18 16.500H2zM10 8v4M10 14.200v.300',
  live: 'M10 11.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3ZM6.500 13.500a5 5 0 0 1 0-7M13.500 6.500a5 5 0 0 1 0 7M4 16a8.500 8.500 0 0 1 0-12M16 4a8.500 8.500 0 0 1 0 12',
  key: 'M7 13.500a4 4 0 1 1 3.600-5.800H18v3h-2v2.500h-3v-2.500h-2.400A4 4 0 0 1 7 13.500ZM6.500 9.500h.100',
  menu: 'M3 5.500h14M3 10h14M3 14.500h14',
  code: 'M7 5.500 2.500 10 7 14.500M13 5.500 17.500 10 13 14.500',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.5"
      stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false"><path d={paths[name]} /></svg>
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
