// Generated from the table in internal/subscribe/code.go by make golden. Do not edit.

/** Codes of error events after which a client stops: connecting again would meet the same error. */
export const final: readonly number[] = [40000, 40001, 40100, 40110, 40111, 40120, 40400, 40401, 40500, 60000];

/** Codes after which it connects again. */
export const passing: readonly number[] = [40112, 40121, 40122, 50000, 50001, 60001, 60100, 60101, 60102, 60103, 60400, 61500];

/** Of those, the ones that need new credentials first. */
export const renewing: readonly number[] = [40112];

/** Whether an error is final. One that nobody knows yet is, if it is the client's. */
export const isFinal = (code: number): boolean => final.includes(code) || (code >= 40_000 && code < 50_000 && !passing.includes(code));
