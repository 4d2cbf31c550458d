import { RE2JS } from 're2js';
import { z } from 'zod';
import { strict } from './strict-schema.ts';

/** Longest wait that can be declared: a day. */
const longestMs = 86_400_000;

const wholeMs = (least: number) =>
  z.number({ error: 'expected a whole number of milliseconds' }).int('expected a whole number of milliseconds').min(least).max(longestMs);

/** Text that a system call can take: no NUL. */
export const plainText = z.string().refine((text) => !text.includes('\0'), 'must not hold a NUL character');

const commandHelp = 'expected a list: the program, then its arguments, as in [node, server.mjs]; no shell interprets it';

/** A program and its arguments. */
export const commandSchema = z
  .array(plainText, { error: commandHelp })
  .min(1, commandHelp)
  .refine((words) => words[0] !== '', { path: [0], message: 'expected the name or path of a program, found none' })
  .transform((words): readonly [string, ...string[]] => words as [string, ...string[]]);

const variableName = z.string().regex(/^[^=\0]+$/, 'the name of an environment variable must not be empty or hold = or NUL');

/** Environment variables; numbers and booleans become their text. */
export const environmentSchema = z.record(
  variableName,
  z.union([plainText, z.number(), z.boolean(), z.bigint()], { error: 'expected text, a number or a boolean' }).transform(String),
);

const checkTiming = {
  /** Between two checks. @default 1_000 */
  intervalMs: wholeMs(10).optional(),
  /** Of one check. @default 5_000 */
  limitMs: wholeMs(10).optional(),
};

const expressionSchema = plainText.min(1).superRefine((text, context) => {
  try {
    RE2JS.compile(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: `is no RE2 expression: ${(error as Error).message}` });
  }
});

const checks = ['http', 'tcp', 'log', 'command', 'delayMs'] as const;

/** How to find out that a service is ready: exactly one check. */
export const readySchema = strict({
  /** A URL that answers with a status from 200 to 399. */
  http: plainText.optional(),
  /** `host:port`, or a port of 127.0.0.1, that takes a connection. */
  tcp: z
    .union([plainText, z.number().int().min(1).max(65_535)], { error: 'expected host:port, or a port' })
    .transform(String)
    .optional(),
  /** Text that a line of the output holds, or an RE2 expression that matches one. */
  log: z.union([plainText.min(1), strict({ expression: expressionSchema })], { error: 'expected text, or { expression: … }' }).optional(),
  /** A command that exits 0. */
  command: commandSchema.optional(),
  /** Running for so long. */
  delayMs: wholeMs(0).optional(),
  ...checkTiming,
}).superRefine((ready, context) => {
  const given = checks.filter((check) => ready[check] !== undefined);
  if (given.length !== 1) {
    context.addIssue({
      code: 'custom',
      message: `expected exactly one of ${checks.join(', ')}, found ${given.length === 0 ? 'none' : given.join(' and ')}`,
    });
  }
});

/** What happens after a service has ended. */
export const restartSchema = strict({
  /** @default 'always' */
  policy: z.enum(['always', 'onFailure', 'never'], { error: 'expected always, onFailure or never' }).optional(),
  /** Before the first restart; doubled with each, reset after a minute of running. @default 100 */
  initialDelayMs: wholeMs(1).optional(),
  /** @default 30_000 */
  maxDelayMs: wholeMs(1).optional(),
});

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGKILL'] as const;

/** How a service is stopped. */
export const stopSchema = strict({
  /** Sent to the whole process group. @default 'SIGTERM' */
  signal: z.enum(signals, { error: `expected one of ${signals.join(', ')}` }).optional(),
  /** Until SIGKILL. @default 5_000 */
  graceMs: wholeMs(0).optional(),
});

/** Permission bits, as text only: in YAML 0600 and "0600" are not the same number. */
export const modeSchema = z
  .string({ error: 'expected text such as "0644": write it in quotes, a number would be read in another base' })
  .regex(/^0?[0-7]{3}$/, 'expected three octal digits such as "0644"');

/** An absolute path. */
export const absolutePath = plainText.refine((path) => path.startsWith('/'), 'expected an absolute path');

export type ReadySpec = z.output<typeof readySchema>;
export type RestartSpec = z.output<typeof restartSchema>;
export type StopSpec = z.output<typeof stopSchema>;
