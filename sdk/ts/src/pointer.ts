/** A member's name as a JSON Pointer has it. */
export function escapeName(name: string): string {
  return /[~/]/.test(name) ? name.replace(/~/g, '~0').replace(/\//g, '~1') : name;
}

/** The name that a step of a JSON Pointer stands for. */
export function unescapeName(step: string): string {
  return step.includes('~') ? step.replace(/~1/g, '/').replace(/~0/g, '~') : step;
}
