declare module 'asl-validator' {
  export default function aslValidator(
    definition: unknown,
    options?: { checkPaths?: boolean; checkArn?: boolean },
  ): { isValid: boolean; errorsText(separator?: string): string };
}
