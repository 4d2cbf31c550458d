export { exitCodes } from './exit-codes.ts';
export type { CliIo } from './io.ts';
export type { ServeModule } from './operator.ts';
export { buildProgram, runCli } from './program.ts';
