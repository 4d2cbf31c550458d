/** Marks the file as a store of ours (`PRAGMA application_id`): the letters SSt1. */
export const applicationId = 0x53537431;

/**
 * Tables, in the order in which they are made.
 *
 * Resources are kept under their uid, the revision of their create: new ones go to the end of the tree, and no index is
 * needed, since names are looked up in memory. The event log is an undo log: of each change it keeps what was there
 * before; what came after is found in the next change, or in the resource. It also carries the state of the whole store
 * after it, so that a commit touches one page less. `private` is empty: it belongs to the
 * format, and keeps room for notes of the store about a resource.
 */
export const tables: Readonly<Record<string, string>> = {
  meta: 'CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID',
  kinds: 'CREATE TABLE kinds (kind INTEGER PRIMARY KEY, namespace TEXT NOT NULL, type TEXT NOT NULL)',
  resources:
    'CREATE TABLE resources (uid INTEGER PRIMARY KEY, version INTEGER NOT NULL, kind INTEGER NOT NULL, id TEXT NOT NULL, crc INTEGER NOT NULL, record TEXT NOT NULL, private BLOB)',
  events:
    'CREATE TABLE events (revision INTEGER PRIMARY KEY, kind INTEGER NOT NULL, uid INTEGER NOT NULL, id TEXT NOT NULL, change INTEGER NOT NULL, at INTEGER NOT NULL, floor INTEGER NOT NULL, count INTEGER NOT NULL, digest INTEGER NOT NULL, crc INTEGER NOT NULL, oldVersion INTEGER, oldCrc INTEGER, old TEXT)',
};

/** What happened in an event. */
export const created = 0;
export const updated = 1;
export const destroyed = 2;
