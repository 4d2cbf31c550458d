export type { SqliteState, SqliteStateOptions } from './sqlite-state.ts';
export { openSqliteState } from './sqlite-state.ts';
export { storeFileAdmin } from './store-admin.ts';
