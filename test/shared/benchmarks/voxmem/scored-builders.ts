import type { VoxmemLane } from '../../../../shared/benchmarks/voxmem/aggregate.ts';
import {
  type ContextLength,
  contextLengths,
  type EvidenceType,
  evidenceTypes,
  type ItemStatus,
  type MemoryOperation,
  memoryOperations,
  type ScoredItem,
} from '../../../../shared/benchmarks/voxmem/format.ts';

export const buildScored = (changes: Partial<ScoredItem> = {}): ScoredItem => {
  const { questionId = 'q1', contextLength = '8k', memoryOperation = 'information_extraction' } = changes;
  return {
    itemId: `${questionId}_${contextLength}`,
    questionId,
    contextLength,
    familyId: 'f1',
    evidenceType: 'speaker_information',
    memoryOperation,
    subtype: 'who',
    expectedResponse: memoryOperation === 'answer_refusal' ? 'insufficient_evidence' : 'answer',
    answerType: 'categorical',
    status: 'correct',
    response: 'Anna',
    failure: null,
    systemPromptDelivery: 'native',
    ...changes,
  };
};

export const buildLane = (
  items: readonly ScoredItem[],
  title: Partial<VoxmemLane['title']> = {},
): VoxmemLane => ({
  title: { id: 'lane-a', displayName: 'Model A', family: 'Omni', model: 'model-a', ...title },
  items,
});

/** One question at several lengths, with a letter a length: see `statusOf`. */
export const buildQuestion = (
  questionId: string,
  letters: Partial<Record<ContextLength, string>>,
  changes: Partial<ScoredItem> = {},
): ScoredItem[] =>
  Object.entries(letters).map(([length, letter]) =>
    buildScored({
      questionId,
      contextLength: length as ContextLength,
      status: statusOf[letter]!,
      ...changes,
    }),
  );

export const statusOf: Record<string, ItemStatus> = {
  c: 'correct',
  i: 'incorrect',
  u: 'ungraded',
  f: 'failed',
  e: 'empty',
  r: 'rejected',
  p: 'pending',
  o: 'open',
};

/** The 15 occupied cells of the data set. */
export const occupiedCells = evidenceTypes.flatMap((evidenceType) =>
  memoryOperations
    .filter((operation) => evidenceType !== 'speech_semantics' || operation !== 'information_extraction')
    .map((memoryOperation) => ({ evidenceType, memoryOperation })),
);

/** Questions of each cell: 669 answerable and 130 to be refused; how they spread over cells is made up. */
export const cellSize = (evidenceType: EvidenceType, operation: MemoryOperation): number => {
  const index = occupiedCells.findIndex(
    (cell) => cell.evidenceType === evidenceType && cell.memoryOperation === operation,
  );
  // 4 AR cells: 40 + 30 + 30 + 30; 11 others: 60 each and 9 more in the first.
  if (operation === 'answer_refusal') return evidenceType === 'speech_semantics' ? 40 : 30;
  return index === 0 ? 69 : 60;
};

/** A run of the whole data set: 799 questions at four lengths. */
export const buildFullRun = (
  statusAt: (
    question: { index: number; memoryOperation: MemoryOperation },
    length: ContextLength,
  ) => ItemStatus,
): ScoredItem[] => {
  const questions = occupiedCells.flatMap(({ evidenceType, memoryOperation }) =>
    Array.from({ length: cellSize(evidenceType, memoryOperation) }, (_, place) => ({
      evidenceType,
      memoryOperation,
      subtype: `kind-${place % 3}`,
    })),
  );
  return questions.flatMap((question, index) =>
    contextLengths.map((contextLength) =>
      buildScored({
        ...question,
        questionId: `q${index}`,
        contextLength,
        status: statusAt({ index, memoryOperation: question.memoryOperation }, contextLength),
      }),
    ),
  );
};
