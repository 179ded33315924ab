import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import type { Horizon, Modality, Side } from './composition.ts';
import type { Interface, PairRole } from './release.ts';

/** What a lane has to come out with in one interface and horizon, for one member of the pairs of a side. */
export interface CellTarget {
  n: number;
  single: number;
  multi: number;
}

/** Counts on complete pairs, horizons pooled; `single` is over both members. */
export interface LadderTarget {
  n: number;
  single: number;
  reference: number;
  conflict: number;
}

export interface LaneTargets {
  /** The name that the report shows. */
  model: string;
  family: string;
  modalities: readonly Modality[];
  cell(name: Interface, horizon: Horizon, side: Side, role: PairRole): CellTarget;
  ladder(name: Interface, side: Side): LadderTarget;
}

type Row = Record<string, string>;

/** The paper's figures; they are no part of the repository. */
export const referenceFolder = path.join(import.meta.dirname, '../../../shared/reference');

export const readReference = (folder: string) => {
  const table = (file: string): Row[] => {
    const found = path.join(folder, file);
    if (!existsSync(found))
      throw new Error(`the paper's figures are not there: ${found} (see bench/paper/README.md)`);
    return parse(readFileSync(found, 'utf8'), { columns: true }) as Row[];
  };
  return {
    cells: table('paper-tables.csv'),
    ladders: table('ladders.csv'),
    leaderboard: table('leaderboard.csv'),
  };
};
export type Reference = ReturnType<typeof readReference>;

export const paperNames: Record<Side, Record<PairRole, string>> = {
  task: { reference: 'Reconfirm', conflict: 'Reground' },
  evidence: { reference: 'Retrieve', conflict: 'Rebind' },
};

const modalitiesOf: Record<string, readonly Modality[]> = { Omni: ['V', 'A'], LVLM: ['V'], LALM: ['A'] };

/** Targets of every model from the paper's tables and ladders, models in the tables' order. */
export const targetsOf = ({ cells, ladders }: Pick<Reference, 'cells' | 'ladders'>): LaneTargets[] => {
  const found = (rows: Row[], wanted: Row): Row => {
    const row = rows.find((one) => Object.entries(wanted).every(([name, value]) => one[name] === value));
    if (row === undefined) throw new Error(`the figures lack ${JSON.stringify(wanted)}`);
    return row;
  };
  return [...new Map(cells.map((row) => [row.model!, row.family!]))].map(([model, family]) => ({
    model,
    family,
    modalities: modalitiesOf[family]!,
    cell: (name, horizon, side, role) => {
      const operation = paperNames[side][role];
      const row = found(cells, { model, interface: name, horizon, operation });
      return {
        n: Number(row.n),
        single: Number(row.single_correct),
        multi: Number(row.multi_correct),
      };
    },
    ladder: (name, side) => {
      const row = found(ladders, { model, interface: name, role: side });
      const n = Number(row.n);
      const count = (column: string, of: number) => Math.round((Number(row[column]) * of) / 100);
      return {
        n,
        single: count('single', 2 * n),
        reference: count('reference', n),
        conflict: count('conflict', n),
      };
    },
  }));
};
