"""The parts of the printer: names of variables, types, expressions, statements, layout of the text."""
