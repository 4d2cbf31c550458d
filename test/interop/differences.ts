/** Rules of ours that a server of the original does not keep, and why. */
export const differences: ReadonlyMap<string, string> = new Map([
  ['create: answers what is stored, which is what a get answers', 'the answer to a create does not carry the time of the write'],
  ['update: from running to tearingDown, and never back', 'a resource may go back to running'],
  ['versions: none is ever used twice, so that a writer of an earlier incarnation gets a conflict', 'versions count from 1 per resource'],
  ['watch: startFromBookmark goes on right after it, without an initial event', 'the first event carries no bookmark'],
  ['bookmarks: W5 and W6, every one resumes exactly after its event, with any kind and query', 'a bookmark is of one kind'],
  ['bookmarks: W9, a foreign, damaged or future one is an error, never silence', 'a bookmark is not checked as a whole'],
  ['bookmarks: W9, one of another store is an error', 'there are no watches of several kinds'],
  ['bookmarks: of a kind resume a watch of one resource, and the other way round', 'the first event carries no bookmark'],
  [
    'races: writes that are not awaited one by one all happen, each with a version of its own, each with one event',
    'versions count from 1 per resource',
  ],
  ['lag: above the common cap a watcher gets a snapshot, and ends up with the state', 'events carry no revision to wait for'],
  [
    'generated: any order of calls ends as a model says, and every watch gives exactly the events that follow (W1–W7, W10, W11)',
    'incarnations are not told apart',
  ],
]);

/** Differences that show in some runs only, so nothing can be said of one run. */
export const sometimes: ReadonlySet<string> = new Set([
  // Positions of one kind are now and then those of another too.
  'bookmarks: W5 and W6, every one resumes exactly after its event, with any kind and query',
]);
