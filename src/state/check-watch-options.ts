import { Bytes, invalid } from '../resource/index.ts';
import { invalidBookmark } from './errors.ts';
import type { WatchKindOptions } from './options.ts';

/** Throws Invalid for options of a watch that are no good or do not go together, InvalidBookmark for what is no bookmark at all. */
export function checkWatchOptions(options: WatchKindOptions): void {
  const { tailEvents, startFromBookmark, bootstrapContents } = options;
  if (tailEvents !== undefined && (!Number.isSafeInteger(tailEvents) || tailEvents < 0))
    throw invalid([{ path: 'tailEvents', message: `expected a whole number from 0, found ${tailEvents}` }]);
  if (tailEvents !== undefined && startFromBookmark !== undefined)
    throw invalid([{ path: 'tailEvents', message: 'cannot be combined with startFromBookmark' }]);
  if (bootstrapContents === true && (tailEvents !== undefined || startFromBookmark !== undefined))
    throw invalid([{ path: 'bootstrapContents', message: 'cannot be combined with tailEvents or startFromBookmark' }]);
  if (startFromBookmark !== undefined && (!Bytes.is(startFromBookmark) || startFromBookmark.length === 0))
    throw invalidBookmark('a bookmark is bytes, as an event carried them');
}
