import { describe, test } from 'vitest';
import { memoryState } from '../../backends/memory/index.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import { stateConformance } from './index.ts';

const environment = nodeEnvironment();

describe('the memory backend conforms', () => {
  const cases = stateConformance(
    (request) => {
      const core = memoryState({ environment, ...request });
      return { core, [Symbol.asyncDispose]: () => core[Symbol.asyncDispose]() };
    },
    {
      environment,
      capabilities: { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false },
      shortHistory: true,
    },
  );
  test.each(cases)('$name', ({ run }) => run());
});
