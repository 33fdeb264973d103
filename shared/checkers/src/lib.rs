//! English checkers: rules, search and the neural evaluator.
