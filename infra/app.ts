import { createEvaluatorApp } from './evaluator-app.ts';

createEvaluatorApp().synth();
