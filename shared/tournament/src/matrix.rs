//! Symmetric positive definite matrices: just what ratings need.

/// The lower triangle L of a matrix M = L Lᵀ; nothing if M is not positive definite.
pub(crate) fn cholesky(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let mut lower = vec![vec![0.0; size]; size];
    for row in 0..size {
        for column in 0..=row {
            let known: f64 = (0..column).map(|at| lower[row][at] * lower[column][at]).sum();
            let rest = matrix[row][column] - known;
            lower[row][column] = if row == column { rest.sqrt() } else { rest / lower[column][column] };
        }
        if !(lower[row][row] > 0.0 && lower[row][row].is_finite()) {
            return None;
        }
    }
    Some(lower)
}

/// The x of L Lᵀ x = right.
pub(crate) fn solve(lower: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let size = lower.len();
    let mut x = right.to_vec();
    for row in 0..size {
        let known: f64 = (0..row).map(|at| lower[row][at] * x[at]).sum();
        x[row] = (x[row] - known) / lower[row][row];
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|at| lower[at][row] * x[at]).sum();
        x[row] = (x[row] - known) / lower[row][row];
    }
    x
}

/// The inverse of L Lᵀ.
pub(crate) fn inverse(lower: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let unit = |at: usize| (0..lower.len()).map(|other| f64::from(u8::from(at == other))).collect::<Vec<_>>();
    (0..lower.len()).map(|at| solve(lower, &unit(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = vec![vec![4.0, 2.0, 0.5], vec![2.0, 5.0, 1.0], vec![0.5, 1.0, 3.0]];
        let inverse = inverse(&cholesky(&matrix).expect("it is positive definite"));
        let product =
            |row: usize, column: usize| (0..3).map(|at| matrix[row][at] * inverse[at][column]).sum::<f64>();
        for (row, column) in (0..9).map(|place| (place / 3, place % 3)) {
            assert!((product(row, column) - f64::from(u8::from(row == column))).abs() < 1e-12);
        }
    }

    #[test]
    fn what_is_not_positive_definite_has_no_root() {
        assert!(cholesky(&[vec![1.0, 2.0], vec![2.0, 1.0]]).is_none());
    }
}
