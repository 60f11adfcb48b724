"""The PTO dialect: types, enumerations, the operation table, the in-memory form and its printer."""
