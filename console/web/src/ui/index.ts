// The parts that pages are made of.
export * from './dialogs';
export * from './forms';
export * from './loading';
export * from './marks';
export * from './secrets';
export * from './tables';
export * from './toasts';
